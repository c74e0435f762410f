//! Changes of files, told by the Linux kernel. On other systems nothing is told.

#[cfg(target_os = "linux")]
pub(super) use linux::Inotify;

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::Inotify;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// Tells of changes of a database: of its file and of the log beside it.
    pub(in super::super) struct Inotify {
        queue: AsyncFd<OwnedFd>,
        prefix: Vec<u8>,
    }

    impl Inotify {
        /// Watches the directory of `path`, not the files: they come and go.
        #[expect(
            deprecated,
            reason = "deprecated for types that may close their descriptor under the reactor, which an owned one cannot; \
                  its successor is `unsafe`, which this workspace forbids"
        )]
        pub(in super::super) fn on(path: &Path) -> io::Result<Self> {
            // SQLite puts the log beside the file that a link leads to.
            let path = std::fs::canonicalize(path)?;
            let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            let changes = WatchFlags::MODIFY
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF;
            inotify::add_watch(&queue, directory, changes)?;
            let queue = AsyncFd::with_interest(queue, Interest::READABLE)?;
            Ok(Self { queue, prefix: name.as_encoded_bytes().to_vec() })
        }

        /// Returns when the database, its log or its directory may have changed.
        ///
        /// # Cancel safety
        ///
        /// A dropped call may have taken events with it only if it was about to return.
        pub(in super::super) async fn changed(&self) -> io::Result<()> {
            loop {
                let mut ready = self.queue.readable().await?;
                let (mut drained, mut ours) = (false, false);
                let mut buffer = [MaybeUninit::uninit(); 4096];
                let mut events = Reader::new(self.queue.get_ref(), &mut buffer);
                while !drained {
                    match events.next() {
                        // Without a name: of the directory itself, or an overflow of the queue.
                        Ok(event) => {
                            ours |= event.file_name().is_none_or(|name| self.concerns(name.to_bytes()));
                        }
                        Err(rustix::io::Errno::WOULDBLOCK) => drained = true,
                        Err(error) => return Err(error.into()),
                    }
                }
                ready.clear_ready();
                if ours {
                    return Ok(());
                }
            }
        }

        /// The shared memory file is written to through a mapping, which the kernel does not tell.
        fn concerns(&self, name: &[u8]) -> bool {
            name.strip_prefix(&*self.prefix).is_some_and(|rest| matches!(rest, b"" | b"-wal" | b"-journal"))
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;
    use std::path::Path;

    pub(in super::super) enum Inotify {}

    impl Inotify {
        pub(in super::super) fn on(_: &Path) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(in super::super) async fn changed(&self) -> io::Result<()> {
            match *self {}
        }
    }
}
