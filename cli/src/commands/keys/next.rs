//! What is to be done once keys were made: which file goes where, and which command comes next.
use super::super::status::columns;
use quorumwire_interfaces::ReplicaId;
use quorumwire_node::key_folder::Step;
use quorumwire_node::options::Hosts;
use std::collections::BTreeMap;
use std::path::Path;

/// How running servers learn of new files.
const RELOAD: &str = "Then send each server SIGHUP: it takes them in without a restart.";
const TO_PLANE_CLIENTS: [&str; 2] = [
    "clients of data planes:",
    "a new file of `quorumwire keys plane-clients`",
];

/// Which file of a new folder belongs to which machine, and what to do then.
pub fn of_new(dir: &Path, cluster: &str, members: &BTreeMap<ReplicaId, Vec<String>>) -> String {
    let mut rows = Vec::new();
    for (id, hosts) in members {
        rows.push([replica(*id, hosts), files_of(*id)]);
    }
    rows.push(row(
        "whoever operates it:",
        "ca.pem operator.pem operator-key.pem",
    ));
    format!(
        "Copy from {} to the machine of\n{}All other files stay here. Then start each replica:\n{}",
        dir.display(),
        table(rows),
        start(cluster, "ID", "")
    )
}

/// The same of one more replica.
pub fn of_add(dir: &Path, cluster: &str, id: ReplicaId, hosts: &[String]) -> String {
    let id_text = id.to_string();
    format!(
        "Copy from {} to the machine of\n{}Then start it, and take it in:\n{}  \
         quorumwire member add --id {id} --peer HOST:PORT\n",
        dir.display(),
        table(vec![[replica(id, hosts), files_of(id)]]),
        start(cluster, &id_text, "--join ")
    )
}

/// The same of a client.
pub fn of_client(dir: &Path, name: &str) -> String {
    let own = format!("ca.pem client-{name}.pem client-{name}-key.pem");
    format!(
        "Copy from {} to\n{}Only clients with a certificate are let in by a server that is started with\n  \
         --client-tls on --client-tls-ca clients-ca.pem\n",
        dir.display(),
        table(vec![
            row(&format!("client {name}:"), &own),
            row("every replica, if it has none yet:", "clients-ca.pem"),
        ])
    )
}

/// The same of new certificates under the same authority.
pub fn of_renew(dir: &Path, has_clients: bool) -> String {
    let rows = table(certificates("", has_clients));
    format!("Copy from {} to\n{rows}{RELOAD}\n", dir.display())
}

/// The same of a step of a rotation.
pub fn of_rotate(dir: &Path, step: Step, has_clients: bool) -> String {
    let authorities = if has_clients {
        "ca.pem clients-ca.pem secret.toml"
    } else {
        "ca.pem secret.toml"
    };
    let mut rows = match step {
        Step::Add | Step::Remove => vec![
            row("every replica:", authorities),
            row("operators, clients with TLS:", "ca.pem"),
        ],
        Step::Use => certificates(" secret.toml", has_clients),
    };
    if matches!(step, Step::Add | Step::Use) {
        rows.push(TO_PLANE_CLIENTS.map(str::to_owned));
    }
    let next = |step: &str| {
        format!(
            "Once all have done so:\n  quorumwire keys rotate --dir {} --step {step}\n",
            dir.display()
        )
    };
    let next = match step {
        Step::Add => next("use"),
        Step::Use => next("remove"),
        Step::Remove => "That ends the rotation: old files are refused.\n".to_owned(),
    };
    let rows = table(rows);
    format!("Copy from {} to\n{rows}{RELOAD}\n{next}", dir.display())
}

/// The same of a file with secrets only: a new one, or after a step of its rotation.
pub fn of_file(file: &Path, step: Option<Step>) -> String {
    let file = file.display();
    let next = |command: &str| {
        format!(
            "Clients of data planes get {}.\nOnce all have it: quorumwire keys {command} --file {file}\n",
            TO_PLANE_CLIENTS[1]
        )
    };
    let (reload, next) = match step {
        None => ("Then start each with --secret-file.", String::new()),
        Some(Step::Add) => (RELOAD, next("use")),
        Some(Step::Use) => (RELOAD, next("remove")),
        Some(Step::Remove) => (RELOAD, "That ends the rotation.\n".to_owned()),
    };
    format!("Copy it to every replica, the same to all. {reload}\n{next}")
}

fn certificates(more: &str, has_clients: bool) -> Vec<[String; 2]> {
    let of_replicas = format!("replica-N.pem replica-N-key.pem{more}");
    let mut rows = vec![
        row("each replica N:", &of_replicas),
        row("operators:", "operator.pem operator-key.pem"),
    ];
    if has_clients {
        rows.push(row(
            "each client NAME:",
            "client-NAME.pem client-NAME-key.pem",
        ));
    }
    rows
}

fn replica(id: ReplicaId, hosts: &[String]) -> String {
    let host = hosts.first().map(|host| format!(" ({host})"));
    format!("replica {id}{}:", host.unwrap_or_default())
}

fn files_of(id: ReplicaId) -> String {
    format!("ca.pem secret.toml replica-{id}.pem replica-{id}-key.pem")
}

/// How a replica is started with its files.
fn start(cluster: &str, id: &str, more: &str) -> String {
    let (command, end) = match Hosts::of(cluster) {
        Hosts::Store => ("server", "..."),
        Hosts::Program => ("run", "... -- COMMAND"),
        Hosts::Values => ("server", "--learners 1,2 ..."),
    };
    let id_option = if more.is_empty() {
        String::new()
    } else {
        format!("--id {id} {more}")
    };
    format!(
        "  quorumwire {command} {id_option}--tls-ca ca.pem --tls-cert replica-{id}.pem \\\n    \
         --tls-key replica-{id}-key.pem --secret-file secret.toml {end}\n"
    )
}

fn row(to: &str, files: &str) -> [String; 2] {
    [to.to_owned(), files.to_owned()]
}

fn table(rows: Vec<[String; 2]>) -> String {
    let rows = rows.into_iter();
    let rows: Vec<_> = rows
        .map(|[to, files]| vec![format!("  {to}"), files])
        .collect();
    columns(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<'a>(said: &'a str, part: &str) -> &'a str {
        let found = said.lines().find(|it| it.contains(part));
        found.unwrap_or_else(|| panic!("{part}: {said}"))
    }

    #[test]
    fn it_says_which_file_belongs_to_which_machine() {
        let members = [
            (ReplicaId(0), vec!["10.0.0.10".to_owned()]),
            (ReplicaId(1), vec![]),
        ];
        let dir = Path::new("KEYS");
        let said = of_new(dir, "quorumwire", &members.clone().into());
        let first = line(&said, "replica 0 (10.0.0.10):");
        assert!(
            first.ends_with("ca.pem secret.toml replica-0.pem replica-0-key.pem"),
            "{said}"
        );
        assert!(
            line(&said, "replica 1:").contains("replica-1-key.pem"),
            "{said}"
        );
        assert!(
            line(&said, "operates").contains("operator-key.pem"),
            "{said}"
        );
        assert!(said.contains("quorumwire server --tls-ca"), "{said}");
        assert!(said.lines().all(|it| it.len() <= 80), "{said}");
        let said = of_new(dir, "quorumwire/run", &members.clone().into());
        assert!(said.contains("quorumwire run --tls-ca"), "{said}");
        let said = of_new(dir, "quorumwire/values", &members.into());
        assert!(said.contains("secret.toml --learners 1,2 ..."), "{said}");
        assert!(said.lines().all(|it| it.len() <= 80), "{said}");
        let said = of_add(dir, "quorumwire", ReplicaId(3), &[]);
        assert!(
            line(&said, "replica 3:").ends_with("replica-3-key.pem"),
            "{said}"
        );
        assert!(said.contains("server --id 3 --join --tls-ca"), "{said}");
        assert!(said.contains("member add --id 3"), "{said}");
        let said = of_client(dir, "web-1");
        assert!(
            line(&said, "client web-1:").ends_with("client-web-1-key.pem"),
            "{said}"
        );
        assert!(
            line(&said, "every replica").ends_with("clients-ca.pem"),
            "{said}"
        );
    }

    #[test]
    fn each_step_names_its_files_and_the_next_step() {
        let dir = Path::new("KEYS");
        for has_clients in [false, true] {
            let said = of_renew(dir, has_clients);
            assert!(
                said.contains("SIGHUP") && !said.contains("ca.pem"),
                "{said}"
            );
            assert_eq!(said.contains("client-NAME.pem"), has_clients, "{said}");
            let said = of_rotate(dir, Step::Use, has_clients);
            assert_eq!(said.contains("client-NAME.pem"), has_clients, "{said}");
            let said = of_rotate(dir, Step::Add, has_clients);
            assert_eq!(said.contains("clients-ca.pem"), has_clients, "{said}");
        }
        let steps = [
            (Step::Add, "--step use", "keys use --file F"),
            (Step::Use, "--step remove", "keys remove --file F"),
            (Step::Remove, "ends the rotation", "ends the rotation"),
        ];
        for (step, next, next_of_file) in steps {
            let said = of_rotate(dir, step, false);
            assert!(
                said.contains(next) && said.contains("secret.toml"),
                "{said}"
            );
            let said = of_file(Path::new("F"), Some(step));
            assert!(
                said.contains(next_of_file) && said.contains("SIGHUP"),
                "{said}"
            );
        }
        let said = of_file(Path::new("F"), None);
        assert!(
            said.contains("--secret-file") && !said.contains("SIGHUP"),
            "{said}"
        );
    }
}
