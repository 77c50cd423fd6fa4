//! Servers whose clients must show a certificate (`client-tls-ca`), with Redis' own client, Python's for
//! Redis and memcached, and the cluster's own library: who shows the right one is let in, and nobody else
//! hears a word.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use quorumwire_client::{Client, Error, Settings, Tls as ClientTls};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, Tls, run};
use quorumwire_cluster_tests::process::CommandOutput;
use quorumwire_cluster_tests::tls::{Shown, TlsClient};

/// The one whose packages tools/setup installs.
const DEBIANS_PYTHON: &str = "/usr/bin/python3";

/// Writes by one protocol and reads by the other. Arguments: address, both ports, authorities, certificate,
/// key; and a password, if there is one.
const PYTHON: &str = r#"
import ssl, sys
import pymemcache, redis
host, redis_port, memcached_port, authorities, certificate, key = sys.argv[1:7]
password = sys.argv[7] if len(sys.argv) > 7 else None
there = redis.Redis(host=host, port=int(redis_port), ssl=True, ssl_ca_certs=authorities,
                    ssl_certfile=certificate, ssl_keyfile=key, password=password)
there.set("from-python", "by redis")
context = ssl.create_default_context(cafile=authorities)
context.load_cert_chain(certificate, key)
other = pymemcache.Client((host, int(memcached_port)), tls_context=context)
if password:
    other.set("login", "default " + password, noreply=False)
print(other.get("from-python").decode())
"#;

fn secured() -> Plan {
    Plan {
        tls: Tls::All,
        ..Plan::new(3, Durability::Memory)
    }
}

fn key_file(cluster: &Cluster<'_>, name: &str) -> String {
    cluster.keys().join(name).display().to_string()
}

/// Starts servers whose clients must show a certificate; `accounts`: and say a password.
fn start(cluster: &mut Cluster<'_>, accounts: Option<&str>) -> Result<()> {
    let keys = cluster.keys().display().to_string();
    cluster.command(&["keys", "client", "--dir", &keys, "web"])?;
    let mut options = vec![("client-tls-ca", leaked(key_file(cluster, "clients-ca.pem")))];
    if let Some(text) = accounts {
        options.push(("client-auth-file", cluster.accounts_file(text)?));
    }
    cluster.set_options(options);
    cluster.start_all()?;
    cluster.wait_for("a leader that all know", || {
        let all = (0..3).map(|id| ask_http(cluster, id, Some("client-web")));
        Ok(all.into_iter().all(|said| said.is_ok_and(|it| it.success)))
    })
}

fn leaked(text: String) -> &'static str {
    text.leak()
}

/// `quorumwire status` of this replica, which succeeds if it knows a leader.
fn ask_http(cluster: &Cluster<'_>, id: u16, shown: Option<&str>) -> Result<CommandOutput> {
    let (http, ca) = (cluster.http(id).to_string(), key_file(cluster, "ca.pem"));
    let mut arguments = vec!["status", "--addr", &http, "--tls-ca", &ca];
    let files = shown
        .map(|name| [".pem", "-key.pem"].map(|end| key_file(cluster, &format!("{name}{end}"))));
    if let Some([certificate, key]) = &files {
        arguments.extend(["--tls-cert", certificate, "--tls-key", key]);
    }
    cluster.try_command(&arguments)
}

fn redis_cli(
    cluster: &Cluster<'_>,
    id: u16,
    shown: Option<&str>,
    words: &[&str],
) -> Result<String> {
    let address = cluster.redis(id);
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let ca = key_file(cluster, "ca.pem");
    let mut arguments = vec!["-h", &host, "-p", &port, "--tls", "--cacert", &ca];
    let files = shown
        .map(|name| [".pem", "-key.pem"].map(|end| key_file(cluster, &format!("{name}{end}"))));
    if let Some([certificate, key]) = &files {
        arguments.extend(["--cert", certificate, "--key", key]);
    }
    arguments.extend(words);
    let done = cluster.run_program("redis-cli", &arguments)?;
    Ok(done.stdout + &done.stderr)
}

fn python(cluster: &Cluster<'_>, id: u16, password: &[&str]) -> Result<CommandOutput> {
    let script = cluster.scratch_file("client.py");
    std::fs::write(&script, PYTHON)?;
    let (redis, memcached) = (cluster.redis(id), cluster.memcached(id));
    let arguments = [
        script.display().to_string(),
        redis.ip().to_string(),
        redis.port().to_string(),
        memcached.port().to_string(),
        key_file(cluster, "ca.pem"),
        key_file(cluster, "client-web.pem"),
        key_file(cluster, "client-web-key.pem"),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    cluster.run_program(DEBIANS_PYTHON, &[&arguments[..], password].concat())
}

#[test]
fn a_certificate_lets_in_and_nothing_else_does() {
    run(secured(), |cluster| {
        start(cluster, None)?;
        for id in 0..3 {
            let said = redis_cli(cluster, id, Some("client-web"), &["SET", "key", "value"])?;
            ensure!(said == "OK\n", "{said}");
            let said = python(cluster, id, &[])?;
            ensure!(
                said.stdout == "by redis\n",
                "{}{}",
                said.stdout,
                said.stderr
            );
        }
        // Nothing, what only replicas and operators show, and another cluster's.
        let elsewhere = cluster.scratch_file("elsewhere");
        cluster.make_keys(&elsewhere)?;
        let dir = elsewhere.display().to_string();
        cluster.command(&["keys", "client", "--dir", &dir, "web"])?;
        let strangers = [
            None,
            Some(Shown::new(&cluster.keys(), "operator")),
            Some(Shown::new(&cluster.keys(), "replica-1")),
            Some(Shown::new(&elsewhere, "client-web")),
        ];
        for shown in &strangers {
            for port in [cluster.redis(0), cluster.memcached(0), cluster.native(0)] {
                let heard = TlsClient::connect(port, None, shown.as_ref())?.say(b"PING\r\n");
                ensure!(heard.is_empty(), "{shown:?}: {heard:?}");
            }
        }
        let said = redis_cli(cluster, 0, None, &["GET", "key"])?;
        ensure!(!said.contains("value"), "{said}");
        ensure!(ask_http(cluster, 0, Some("client-web"))?.success);
        the_library(cluster, &elsewhere)?;
        whoever_asks_over_http(cluster)
    });
}

/// The library shows its certificate at each replica; without the right one it hears nothing.
fn the_library(cluster: &Cluster<'_>, elsewhere: &Path) -> Result<()> {
    let keys = cluster.keys();
    let tls = ClientTls::from_ca_file(keys.join("ca.pem"))?;
    let shows = |dir: &Path, name: &str| {
        let [chain, key] = [".pem", "-key.pem"].map(|end| dir.join(format!("{name}{end}")));
        tls.clone().with_certificate(chain, key)
    };
    let at = |id: u16, tls: ClientTls, seconds| Settings {
        tls: Some(tls),
        patience: Duration::from_millis(500),
        deadline: Duration::from_secs(seconds),
        ..Settings::new([cluster.native(id).to_string()])
    };
    for id in 0..3 {
        let client = Client::connect(&at(id, shows(&keys, "client-web")?, 10))?;
        client.set("from-the-library", "shown")?;
        let value = client.get("from-the-library")?;
        ensure!(value.as_deref() == Some(&b"shown"[..]), "{value:?}");
    }
    let strangers = [
        tls.clone(),
        shows(&keys, "operator")?,
        shows(elsewhere, "client-web")?,
    ];
    for stranger in strangers {
        let refused = Client::connect(&at(0, stranger, 1)).err();
        ensure!(matches!(refused, Some(Error::NoAnswer(_))), "{refused:?}");
    }
    // A key that is not the certificate's is found before anything is sent.
    let (chain, key) = (keys.join("client-web.pem"), keys.join("operator-key.pem"));
    let mixed = tls.with_certificate(chain, key).err();
    ensure!(matches!(mixed, Some(Error::Invalid(_))), "{mixed:?}");
    Ok(())
}

/// Over HTTP a client's certificate is good for reading, an operator's for everything.
fn whoever_asks_over_http(cluster: &Cluster<'_>) -> Result<()> {
    let refused = ask_http(cluster, 0, None)?;
    let said = refused.stdout + &refused.stderr;
    ensure!(
        !refused.success && said.contains("takes a certificate"),
        "{said}"
    );
    let (http, ca) = (cluster.http(0).to_string(), key_file(cluster, "ca.pem"));
    let snapshot = |name: &str| {
        let (certificate, key) = (format!("{name}.pem"), format!("{name}-key.pem"));
        let (certificate, key) = (key_file(cluster, &certificate), key_file(cluster, &key));
        let ask = ["snapshot", "--addr", &http, "--tls-ca", &ca];
        let shown = ["--tls-cert", &certificate, "--tls-key", &key];
        cluster.try_command(&[&ask[..], &shown].concat())
    };
    let refused = snapshot("client-web")?;
    ensure!(!refused.success && refused.stderr.contains("takes a certificate"));
    ensure!(snapshot("operator")?.success);
    let health = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let ca = cluster.keys().join("ca.pem");
    let connected = TlsClient::connect(cluster.http(0), Some(&ca), None)?;
    let said = String::from_utf8_lossy(&connected.say(health.as_bytes())).into_owned();
    ensure!(said.starts_with("HTTP/1.1 200"), "{said}");
    Ok(())
}

#[test]
fn with_accounts_it_takes_a_certificate_and_a_password() {
    run(secured(), |cluster| {
        start(cluster, Some("default:opensesame\n"))?;
        let shown = Some("client-web");
        let said = redis_cli(cluster, 1, shown, &["SET", "key", "value"])?;
        ensure!(said.contains("NOAUTH"), "{said}");
        let with_password = [
            "--no-auth-warning",
            "-a",
            "opensesame",
            "SET",
            "key",
            "value",
        ];
        let said = redis_cli(cluster, 1, shown, &with_password)?;
        ensure!(said == "OK\n", "{said}");
        let said = redis_cli(cluster, 1, None, &with_password)?;
        ensure!(!said.contains("OK"), "{said}");
        let said = python(cluster, 1, &["opensesame"])?;
        ensure!(
            said.stdout == "by redis\n",
            "{}{}",
            said.stdout,
            said.stderr
        );
        let said = python(cluster, 1, &[])?;
        ensure!(
            !said.success && said.stderr.contains("Authentication"),
            "{}",
            said.stderr
        );
        Ok(())
    });
}
