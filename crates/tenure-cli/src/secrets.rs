//! Keeps passwords out of what is printed.
//!
//! The parser of the command line repeats what it does not understand, and a URL with a password may stand anywhere on
//! it. Whatever is printed because something failed goes through here.

use std::env;

use tenure::StoreUrl;

/// Knows the texts that must not be shown, and what to show instead.
#[derive(Default)]
pub(crate) struct Secrets {
    hidden: Vec<(String, String)>,
}

/// Shorter passwords are not looked for in a text: they would be found everywhere.
const SHORTEST_PASSWORD: usize = 4;

impl Secrets {
    /// What the command line and the environment may give away.
    pub(crate) fn of_this_process() -> Self {
        let mut secrets = Self::default();
        for argument in env::args_os().chain(env::var_os(crate::store::URL_VARIABLE)) {
            secrets.add(&argument.to_string_lossy());
        }
        secrets
    }

    /// Hides the URL that `text` holds, if any.
    pub(crate) fn add(&mut self, text: &str) {
        let Some(at) = text.find("://") else { return };
        let start = text[..at].rfind(|c: char| !is_scheme_character(c)).map_or(0, |last| last + 1);
        let url = &text[start..];
        if let Some(userinfo) = userinfo(url) {
            let password = userinfo.split_once(':').map_or(userinfo, |(_, password)| password);
            self.hide(userinfo, "…");
            self.hide(password, "…");
        }
        match StoreUrl::parse(url) {
            Ok(parsed) => {
                self.hide(parsed.password().unwrap_or_default(), "…");
                self.hide(url, &parsed.to_string());
            }
            Err(_) => self.hide(url, &format!("{}://…", &text[start..at])),
        }
        // The longest first, so that no part is replaced before its whole.
        self.hidden.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    }

    /// `text` without the secrets.
    pub(crate) fn hide_in(&self, text: &str) -> String {
        self.hidden.iter().fold(text.to_owned(), |text, (hidden, shown)| text.replace(hidden, shown))
    }

    fn hide(&mut self, text: &str, shown: &str) {
        if text.len() >= SHORTEST_PASSWORD && text != shown {
            self.hidden.push((text.to_owned(), shown.to_owned()));
        }
    }
}

fn is_scheme_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')
}

fn userinfo(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    Some(rest.rsplit_once('@')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_hidden_wherever_it_stands() {
        for argument in [
            "redis://u:canary@h:1/0",
            "--stor=redis://u:canary@h:1/0",
            "redis://u:can%61ry@h:1",
            "redis://u:can'ary @h:1",
            "postgres://h/db?password=canary",
            "redis://canary@h:x",
            "bad scheme://u:canary@h",
        ] {
            let mut secrets = Secrets::default();
            secrets.add(argument);
            let shown = secrets.hide_in(&format!("error: unexpected argument '{argument}' found"));
            for form in ["canary", "can%61ry", "can'ary"] {
                assert!(!shown.contains(form), "{argument}: {shown}");
            }
        }
    }

    #[test]
    fn the_password_alone_is_hidden_too_in_both_spellings() {
        let mut secrets = Secrets::default();
        secrets.add("redis://u:can%61ry@h");
        assert_eq!(secrets.hide_in("WRONGPASS canary, can%61ry"), "WRONGPASS …, …");
    }

    #[test]
    fn what_holds_no_secret_stays_as_it_is() {
        let mut secrets = Secrets::default();
        secrets.add("nightly");
        secrets.add("sqlite:///var/x.db");
        assert_eq!(secrets.hide_in("nightly in sqlite:///var/x.db"), "nightly in sqlite:///var/x.db");
    }
}
