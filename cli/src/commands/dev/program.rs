//! What stands behind the `--` of `quorumwire dev`: options for servers, a program that is served, or both.
use super::super::local_cluster::Program;
use quorumwire_node::options::Refused;

/// Behind these, programs are told where to listen.
const PORT_OPTIONS: [&str; 4] = ["--port", "-p", "--listen", "-l"];

/// Options for each server, and the program if there is one: it begins with the first word if that is no
/// option, or else behind another `--`.
pub fn split(
    words: &[String],
    serve: Option<u16>,
) -> Result<(&[String], Option<Program>), Refused> {
    let begins_with_option = words.first().is_none_or(|word| word.starts_with('-'));
    let (options, command) = if begins_with_option {
        let mut parts = words.splitn(2, |word| word == "--");
        (parts.next().unwrap_or_default(), parts.next())
    } else {
        (&[][..], Some(words))
    };
    let Some(command) = command.filter(|command| !command.is_empty()) else {
        return match serve {
            None => Ok((options, None)),
            Some(port) => {
                let why = "no program stands behind `--` that could have this port";
                Err(Refused::because("serve", port.to_string(), why))
            }
        };
    };
    let port = serve.or_else(|| port_in(command)).ok_or_else(|| {
        let why = "its port is not found behind --port, -p, --listen or -l. Name it before `--`: --serve PORT";
        Refused::because("COMMAND", command.join(" "), why)
    })?;
    let command = command.to_vec();
    Ok((options, Some(Program { command, port })))
}

/// The port that a program's arguments name.
fn port_in(command: &[String]) -> Option<u16> {
    let mut words = command.iter().skip(1);
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), words.clone().next().map(String::as_str)),
        };
        let port = value
            .filter(|_| PORT_OPTIONS.contains(&name))
            .and_then(|it| {
                let port = it.rsplit_once(':').map_or(it, |(_, port)| port);
                port.parse().ok().filter(|port| *port != 0)
            });
        if port.is_some() {
            return port;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_program_is_what_begins_with_no_option() {
        for (text, options, command) in [
            ("", "", ""),
            ("--lease-ms 10", "--lease-ms 10", ""),
            ("redis-server --port 7", "", "redis-server --port 7"),
            ("--lease-ms 10 -- x -p 7", "--lease-ms 10", "x -p 7"),
            ("x -p 7 -- y", "", "x -p 7 -- y"),
        ] {
            let given = words(text);
            let (its_options, program) = split(&given, None).unwrap();
            let its_command = program.map_or(Vec::new(), |it| it.command);
            assert_eq!(its_options, words(options), "{text}");
            assert_eq!(its_command, words(command), "{text}");
        }
    }

    #[test]
    fn its_port_is_found_or_asked_for() {
        let port = |text: &str, serve| {
            let split = split(&words(text), serve).map(|(_, program)| program.unwrap().port);
            split.map_err(|refused| refused.to_string())
        };
        assert_eq!(port("redis-server --port 6379 --save 5", None), Ok(6379));
        assert_eq!(port("memcached -l 127.0.0.1 -p 11211", None), Ok(11211));
        assert_eq!(port("x --listen=[::1]:80", None), Ok(80));
        assert_eq!(port("x --port 6379", Some(6380)), Ok(6380));
        for without in [
            "nginx",
            "redis-server redis.conf",
            "x --port 0",
            "x --port",
            "-l 5",
        ] {
            let text = format!("--lease-ms 10 -- {without}");
            let said = port(&text, None).unwrap_err();
            assert!(said.contains("--serve PORT"), "{without}: {said}");
        }
        let said = split(&[], Some(7)).unwrap_err().to_string();
        assert!(said.starts_with("option serve: \"7\""), "{said}");
    }
}
