//! The page that a browser gets: who leads, since when, and the terms seen so far. It needs nothing from elsewhere.

pub(super) const HTML: &str = include_str!("page.html");
