//! Names.

use tenure_core::{Acquired, Grant, LeaseName, StoreErrorKind};

use crate::bench::Bench;
use crate::clause::{Clause, Stop, Verdict, clause, ensure, fail};
use crate::client::Client;

pub(super) const CLAUSES: &[Clause] = &[
    // K15
    clause!(
        "name-case",
        case,
        "Names that differ in case are different leases.",
        "A column whose collation folds case: two services that never heard of each other exclude each other."
    ),
    clause!(
        "name-blanks",
        blanks,
        "Names that differ in blanks at their ends are different leases.",
        "Trimming, or a collation that pads with blanks."
    ),
    clause!(
        "name-separators",
        separators,
        "Slashes, dots and colons in names separate nothing.",
        "A name that is a path: `a` and `a/b` nest, `a/../b` is `b`, and `a:fence` is the counter of `a`."
    ),
    clause!(
        "name-braces",
        braces,
        "Braces in names group nothing.",
        "A hash tag in the middle of a key: part of a lease in another slot, or two leases on one."
    ),
    clause!(
        "name-percent",
        percent,
        "Percent signs, wildcards and underscores in names stand for themselves.",
        "An encoding that is not injective: `a/b` and `a%2Fb` meet."
    ),
    clause!(
        "name-quotes",
        quotes,
        "Quotes, semicolons and placeholders in names stand for themselves.",
        "A name that is spliced into a statement or script."
    ),
    // K15
    clause!(
        "name-unicode",
        unicode,
        "Names that look or normalise alike are different leases.",
        "Unicode normalisation or case folding somewhere on the way."
    ),
    // K15
    clause!(
        "name-prefix",
        prefix,
        "A name that begins another is a lease of its own.",
        "Reading or deleting by prefix: an election sees the leader of another one."
    ),
    clause!(
        "name-long",
        long,
        "Names of 200 bytes that differ in the last one are different leases.",
        "Truncating a name to what fits a key."
    ),
    // K15
    clause!(
        "name-apart",
        apart,
        "What is done with one lease never touches another, of the same candidate too.",
        "Comparing candidate and token and not the name; one server-side lease for all of a process."
    ),
];

async fn case(bench: &Bench<'_>) -> Verdict {
    isolated(bench, |s| {
        [format!("{s}-a"), format!("{s}-A"), format!("{s}-ß"), format!("{s}-SS"), format!("{s}-ss")].into()
    })
    .await
}

async fn blanks(bench: &Bench<'_>) -> Verdict {
    isolated(bench, |s| {
        let odd = ["{} ", " {}", "{}  ", " {} ", "{}\u{a0}", "{}\u{3000}", "{}\u{200b}", "{}"];
        odd.iter().map(|odd| odd.replace("{}", s)).collect()
    })
    .await
}

async fn separators(bench: &Bench<'_>) -> Verdict {
    isolated(bench, |s| {
        let parts =
            ["", "/", "/a", "//a", "/a/", "/../a", "/./a", ":lease", ":fence", ".a", ".", "\\a", "|a", ",a", "#a"];
        parts.iter().map(|part| format!("{s}{part}")).chain([format!("/{s}"), format!("../{s}")]).collect()
    })
    .await
}

async fn braces(bench: &Bench<'_>) -> Verdict {
    isolated(bench, |s| {
        let odd = ["{x}@", "{y}@", "@{x}", "}@", "@}", "{}@", "@{", "{@}", "{{@}}", "@"];
        odd.iter().map(|odd| odd.replace('@', s)).collect()
    })
    .await
}

async fn percent(bench: &Bench<'_>) -> Verdict {
    isolated(bench, |s| {
        let parts = [
            "/", "%2F", "%2f", "%252F", "%", "%%", "%25", "%s", "+", "%20", "_", "x", "*", "?", "[x]", "=", "==", "~1",
            "~",
        ];
        parts.iter().map(|part| format!("{s}{part}")).collect()
    })
    .await
}

async fn quotes(bench: &Bench<'_>) -> Verdict {
    isolated(bench, |s| {
        let parts =
            ["'", "''", "\"", "`", "\\'", "';--", "') --", "$1", "?1", ":name", "@name", "]]", "${x}", "<x>", "&amp;"];
        parts.iter().map(|part| format!("{s}{part}")).collect()
    })
    .await
}

async fn unicode(bench: &Bench<'_>) -> Verdict {
    isolated(bench, |s| {
        // Composed and decomposed, plain and full-width, ligature and letters, joined and not, with and without marks.
        let parts = [
            "é",
            "e\u{301}",
            "e",
            "A",
            "Ａ",
            "ﬁ",
            "fi",
            "ﬀ",
            "ff",
            "ı",
            "i",
            "İ",
            "Å",
            "\u{212b}",
            "日本",
            "👩‍🚀",
            "👩🚀",
            "א",
        ];
        parts.iter().map(|part| format!("{s}{part}")).collect()
    })
    .await
}

async fn prefix(bench: &Bench<'_>) -> Verdict {
    isolated(bench, |s| {
        ["", "a", "ab", "-", "0", "00", "a/b", "a/bc"].iter().map(|part| format!("{s}{part}")).collect()
    })
    .await
}

async fn long(bench: &Bench<'_>) -> Verdict {
    isolated(bench, |s| {
        let filled = |bytes: usize, end: &str| format!("{s}{}{end}", "x".repeat(bytes - s.len() - end.len()));
        let wide = |end: &str| {
            let rest = LeaseName::MAX_BYTES - s.len() - end.len();
            format!("{s}{}{}{end}", "日".repeat(rest / 3), "y".repeat(rest % 3))
        };
        let max = LeaseName::MAX_BYTES;
        [filled(max, "1"), filled(max, "2"), filled(max - 1, "1"), filled(64, "1"), wide("1"), wide("2")].into()
    })
    .await
}

async fn apart(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let (a, b) = (bench.bid(&bench.name()?), bench.short_bid(&bench.name()?));
    let mut b = b;
    b.candidate = a.candidate.clone();
    let first = client.granted(&a).await?;
    let before = bench.snapshot(&other, &a.name).await?;
    let second = client.granted_at(&b).await?;
    client.extended(&second.value).await?;
    bench.unchanged(&other, &before, "a renewal of another lease").await?;
    let second = client.granted_at(&b).await?;
    bench.outlast(&second, &other, &bench.bid(&b.name)).await?;
    bench.unchanged(&other, &before, "the expiry of another lease").await?;
    client.not_held(&second.value, "a term of another lease that ran out").await?;
    bench.unchanged(&other, &before, "the release of another lease").await?;
    client.extended(&first).await?;
    client.freed(&first).await?;
    let third = client.granted(&a).await?;
    ensure!(third.token > first.token, "the token went from {} to {}", first.token, third.token);
    other.held(&bench.bid(&b.name)).await?;
    Ok(())
}

/// Takes all the leases, each for a candidate of its own, and sees that each is its holder's only and shows its exact
/// name; that freeing every other one frees no more than these; and that the freed ones can be taken again.
///
/// A store may refuse a name, before anything is sent.
async fn isolated(bench: &Bench<'_>, names: impl FnOnce(&str) -> Vec<String>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let mut made = Vec::new();
    bench.name_of(|stem, _| {
        made = names(stem);
        stem.to_owned()
    })?;
    let mut grants = Vec::new();
    for text in made {
        let name = bench.name_of(|_, _| text)?;
        if let Some(grant) = taken_or_refused(bench, &client, &name).await? {
            grants.push(grant);
        }
    }
    ensure!(
        grants.len() >= 2,
        "all but {} of the names were refused: at least two are needed to compare",
        grants.len()
    );
    for grant in &grants {
        let record = other.shows(grant).await?;
        ensure!(record.name == grant.name, "the record of {:?} calls itself {:?}", grant.name, record.name);
        client.extended(grant).await?;
    }
    for grant in grants.iter().step_by(2) {
        client.freed(grant).await?;
    }
    for (at, grant) in grants.iter().enumerate() {
        match at % 2 {
            0 => other.nobody(&grant.name).await?,
            _ => drop(other.shows(grant).await?),
        }
    }
    for grant in grants.iter().step_by(2) {
        let again = other.granted(&bench.bid(&grant.name)).await?;
        ensure!(
            again.token > grant.token,
            "the token of {:?} went from {} to {}",
            grant.name,
            grant.token,
            again.token
        );
    }
    Ok(())
}

async fn taken_or_refused(bench: &Bench<'_>, client: &Client, name: &LeaseName) -> Result<Option<Grant>, Stop> {
    match client.bare().try_acquire(&bench.bid(name)).await {
        Ok(Acquired::Granted(grant)) => Ok(Some(grant)),
        Ok(Acquired::Held(record)) => fail!("{name:?} is held before anybody took it: {record:?}"),
        Err(error) if error.kind() == StoreErrorKind::Invalid => Ok(None),
        Err(error) if error.kind().is_transient() => Ok(Some(client.granted(&bench.bid(name)).await?)),
        Err(error) => Err(error.into()),
    }
}
