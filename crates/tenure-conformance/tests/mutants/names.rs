//! What a lease is filed under.

use tenure_core::LeaseName;

use crate::mistake::Mistake;

/// The key of a lease: its name as it is, but for mistakes about names.
pub(crate) fn key_of(mistake: Option<Mistake>, name: &LeaseName) -> String {
    let name = name.as_str();
    match mistake {
        Some(Mistake::NamesFolded) => name.to_lowercase(),
        Some(Mistake::NamesTrimmed) => name.trim().to_owned(),
        Some(Mistake::NamesArePaths) => path(name),
        Some(Mistake::NamesHashTagged) => match name.split_once('{').and_then(|(_, rest)| rest.split_once('}')) {
            Some((tag, _)) if !tag.is_empty() => tag.to_owned(),
            _ => name.to_owned(),
        },
        Some(Mistake::NamesDecoded) => name.replace("%2F", "/").replace("%2f", "/").replace("%25", "%"),
        Some(Mistake::NamesUnquoted) => name.replace(['\'', '"', '`'], ""),
        // Enough of a normal form: combining marks go, full-width letters become plain.
        Some(Mistake::NamesNormalised) => name.replace('\u{301}', "").replace('Ａ', "A").replace('\u{212b}', "Å"),
        Some(Mistake::NamesByPrefix) => name.get(..name.len().min(PREFIX)).unwrap_or(name).to_owned(),
        Some(Mistake::NamesTruncated) => {
            let cut = (0..=name.len().min(190)).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
            name[..cut].to_owned()
        }
        _ => name.to_owned(),
    }
}

/// The length of a name that the bench draws, without the part that tells names of one clause apart.
const PREFIX: usize = "tenure-conformance-0123456789ab".len();

fn path(name: &str) -> String {
    let mut steps = Vec::new();
    for step in name.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps.join("/")
}
