//! Mistakes, one of which a store makes on purpose.

/// Defines the mistakes and a list of them all.
macro_rules! mistakes {
    ($($(#[doc = $doc:literal])+ $mistake:ident,)+) => {
        /// What is wrong with a store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Mistake {
            $($(#[doc = $doc])+ $mistake,)+
        }

        impl Mistake {
            /// All of them.
            pub(crate) const ALL: &[Self] = &[$(Self::$mistake),+];
        }
    };
}

mistakes! {
    /// Grants half of the ttl that was asked for, and says so.
    GrantsHalf,
    /// Answers contention with an error.
    ContentionIsAnError,
    /// A losing bid restarts the holder's ttl.
    LosingBidRestartsTtl,
    /// Looks, and writes in a second request whatever has changed meanwhile.
    CheckThenSet,
    /// The holder's own record keeps it out.
    OwnRecordKeepsOut,
    /// The holder's repeated bid is granted, and the expiry stays.
    RepeatedBidExtendsNothing,
    /// A repeated bid gets a new receipt, and only that one is renewed.
    RepeatedBidNewReceipt,
    /// A repeated bid moves the expiry back when its ttl is shorter.
    RepeatedBidShortens,
    /// A repeated bid raises the token.
    RepeatedBidNewToken,
    /// A candidate whose term ran out gets it back, with its token.
    ExpiredTermRevived,
    /// Says that the term before was released, whatever became of it.
    ClaimsOrderlyRelease,
    /// Takes over what is no lease.
    ForeignTakenOver,
    /// The counter goes with the released lease.
    ReleaseForgetsCounter,
    /// The counter goes with the expired lease.
    ExpiryForgetsCounter,
    /// Each candidate has a counter.
    CounterPerCandidate,
    /// A candidate is recognised by its label: a new campaign keeps the old token.
    CandidateByLabel,
    /// The counter lives in the client.
    CounterInClient,
    /// The counter does not outlive the server.
    CounterInServerMemory,
    /// The counter goes with the removed record.
    RemovalForgetsCounter,
    /// Every write raises the token.
    TokenCountsWrites,
    /// The token is read in one request and written in the next.
    TokenReadThenWritten,
    /// A renewal is confirmed, and the expiry stays.
    RenewalExtendsNothing,
    /// A renewal adds its ttl to what is left.
    RenewalAddsTtl,
    /// A renewal gives half of the ttl, and says so.
    RenewalGivesHalf,
    /// A renewal moves the expiry back when its ttl is shorter.
    RenewalShortens,
    /// Renews by name only.
    RenewsByName,
    /// Renews by candidate, whatever the token.
    RenewsByCandidate,
    /// Extends a record that ran out.
    ExpiredIsExtended,
    /// A renewal brings a released lease back.
    RenewalBringsBack,
    /// A renewal creates what is not there.
    RenewalCreates,
    /// A renewal puts back what was removed.
    RenewalPutsBack,
    /// A renewal that is refused extends the lease of whoever has it.
    RefusedRenewalExtends,
    /// Overwrites what is no lease with a renewal.
    RenewalOverwritesForeign,
    /// A renewal forgets the payload.
    RenewalForgetsPayload,
    /// A renewal extends every lease of the candidate.
    RenewsAllOfCandidate,
    /// A release is confirmed, and the lease left to run out.
    ReleaseLeavesRecord,
    /// Releases without comparing.
    ReleasesByName,
    /// Releases by candidate, whatever the token.
    ReleasesByCandidate,
    /// A second release is an error.
    SecondReleaseIsAnError,
    /// A term that ran out releases its successor.
    ReleasesSuccessor,
    /// The release of what never was is confirmed.
    ReleaseOfNothingIsFreed,
    /// The release of a removed record is an error.
    ReleaseOfRemovedIsAnError,
    /// Nothing ever runs out.
    TtlIgnored,
    /// Keeps leases for whole seconds, rounded down.
    TtlRoundedDown,
    /// Leases end with the client that took them.
    LeaseEndsWithClient,
    /// A read shows a lease that ran out.
    ReadShowsExpired,
    /// Judges an expiry by the ttl of the bid that would like it.
    TtlOfContender,
    /// Takes a record that never runs out for held.
    EternalIsHeld,
    /// A read shows no token.
    ReadForgetsToken,
    /// A read shows the last holder after its release.
    ReadShowsReleased,
    /// The time left is always the ttl.
    TimeLeftIsTtl,
    /// The time left is a minute too long.
    TimeLeftTooLong,
    /// A read shows the last bidder.
    ReadShowsLoser,
    /// Every other read comes from a replica that lags behind.
    ReadsFromLaggingReplica,
    /// A read restarts the ttl.
    ReadProlongs,
    /// A read shows nobody where something foreign is.
    ForeignReadsAsNobody,
    /// The list shows released leases.
    ListShowsReleased,
    /// A release wakes nobody.
    ReleaseWakesNobody,
    /// A grant wakes nobody.
    GrantWakesNobody,
    /// Renewals wake everybody.
    RenewalsWake,
    /// A removal by hand wakes nobody.
    RemovalWakesNobody,
    /// A watch subscribes when it is polled first.
    SubscribesAtFirstPoll,
    /// Only one watcher of a lease is woken.
    OneWatcherIsWoken,
    /// A watch is silent after its connection was cut.
    SilentAfterCut,
    /// A watch does not tell that it was cut off.
    GapIsNotTold,
    /// Names are folded to lower case.
    NamesFolded,
    /// Names are trimmed.
    NamesTrimmed,
    /// Names are paths.
    NamesArePaths,
    /// The part of a name in braces is the name.
    NamesHashTagged,
    /// Names are percent-decoded.
    NamesDecoded,
    /// Quotes are taken out of names.
    NamesUnquoted,
    /// Names are normalised.
    NamesNormalised,
    /// A name is whatever begins with it.
    NamesByPrefix,
    /// Names are cut to 190 bytes.
    NamesTruncated,
    /// Payloads are trimmed.
    PayloadTrimmed,
    /// The first payload of a lease stays.
    FirstPayloadStays,
    /// The client takes a bid that it sent for granted.
    ClientTrustsItsBid,
    /// Takes the lease in one request, and sets its expiry in the next.
    SetThenExpire,
    /// A bid of the candidate that released the lease gets the old term back.
    CopyRevivesTerm,
    /// The client counts its renewals when it sends them, and the server expects the next number.
    CountsRenewalsWhenSent,
    /// The next renewal must carry what the answer to the last one brought.
    NeedsLastAnswer,
    /// The client forgets a term when it sends the release.
    ForgetsWhenSent,
    /// A time-out is answered as a refusal.
    UnknownIsRefused,
    /// A call whose answer does not come waits for ever.
    WaitsForEver,
    /// A dropped bid leaves a lock on the record.
    DroppedBidLocks,
    /// A dropped renewal does.
    DroppedRenewalLocks,
    /// A dropped release does.
    DroppedReleaseLocks,
    /// A dropped batch does.
    DroppedBatchLocks,
    /// The answer to a dropped read is the next one's.
    DroppedReadAnswersNext,
    /// A dropped call keeps its connection.
    DroppedCallKeepsConnection,
    /// A dropped watch keeps its connection.
    DroppedWatchKeepsConnection,
    /// Fractions of the unit are cut off.
    FractionsCutOff,
    /// A ttl under the minimum is none.
    ShortTtlIsForever,
    /// A ttl over the maximum wraps round.
    LongTtlWraps,
    /// Expiry by the client's clock.
    ClientClock,
    /// Expiry by the client's local time.
    LocalTime,
    /// Describes itself with a minimum over the maximum.
    DescribesNonsense,
    /// Setting up empties what is there.
    SetupEmpties,
    /// Setting up fails when another client does it too.
    SetupRaces,
    /// What is not set up is a passing fault.
    MissingIsPassing,
    /// A wrong password is a passing fault.
    WrongPasswordIsPassing,
    /// An error shows the password.
    PasswordInError,
    /// A missing right is a passing fault.
    MissingRightIsPassing,
    /// A batch renews its first lease only.
    BatchRenewsFirst,
    /// A batch is answered in the order of names.
    BatchSorted,
    /// Something foreign spoils a whole batch.
    ForeignSpoilsBatch,
    /// A batch of nothing is an error.
    EmptyBatchIsAnError,
    /// A batch holds a hundred leases.
    BatchOfHundred,
    /// A batch splits its names at commas.
    BatchSplitsNames,
}
