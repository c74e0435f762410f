//! `tenure completions` and `tenure man`: what shells and readers want to know about the command itself.

use std::io::{Write, stdout};

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};
use crate::exit;

pub(crate) fn completions(args: &CompletionsArgs) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "tenure", &mut script);
    print(&script)
}

/// One page for the command and all its subcommands.
pub(crate) fn man() -> u8 {
    let mut command = Args::command();
    command.build();
    let mut pages = Vec::new();
    let rendered = clap_mangen::Man::new(command.clone()).render(&mut pages).and_then(|()| {
        let subcommands = command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help");
        subcommands.cloned().try_for_each(|subcommand| {
            let name = format!("tenure {}", subcommand.get_name());
            clap_mangen::Man::new(subcommand.display_name(name)).render(&mut pages)
        })
    });
    match rendered {
        Ok(()) => print(&pages),
        Err(_) => exit::NO,
    }
}

fn print(text: &[u8]) -> u8 {
    match stdout().lock().write_all(text) {
        Ok(()) => exit::YES,
        Err(_) => exit::NO,
    }
}
