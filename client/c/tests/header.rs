//! The header, the library and the manual say the same, and what is misused is noticed.
use quorumwire_c::{Code, Recovered};
use std::collections::BTreeSet;
use std::fs;
use std::mem::{align_of, offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const HEADER: &str = include_str!("../quorumwire.h");
const MAP: &str = include_str!("../quorumwire.map");
const EVPAXOS_HEADERS: [&str; 2] = [
    include_str!("../evpaxos/evpaxos.h"),
    include_str!("../evpaxos/paxos.h"),
];
const EVPAXOS_MAP: &str = include_str!("../evpaxos/evpaxos.map");
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn run(program: impl AsRef<Path>, arguments: &[&str]) -> Output {
    let program = program.as_ref();
    let done = Command::new(program).args(arguments).output();
    let done = done.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{} {arguments:?}: {said}",
        program.display()
    );
    done
}

fn stdout(program: impl AsRef<Path>, arguments: &[&str]) -> String {
    String::from_utf8(run(program, arguments).stdout).unwrap()
}

/// The library as a program finds it.
fn installed() -> TempDir {
    let prefix = TempDir::new().unwrap();
    let to = format!("PREFIX={}", prefix.path().display());
    run(folder().join("install"), &[&to, "PROFILE=dev"]);
    prefix
}

/// The header without what it explains.
fn code(header: &str) -> String {
    let mut code = String::new();
    let mut left = header;
    while let Some((before, comment)) = left.split_once("/*") {
        code.push_str(before);
        left = comment.split_once("*/").expect("comments end").1;
    }
    code + left
}

/// Names in front of an opening parenthesis.
fn declared(header: &str) -> BTreeSet<String> {
    let code = code(header);
    let words = code.split('(').map(|before| {
        let word = before.rsplit(|it: char| !it.is_ascii_alphanumeric() && it != '_');
        word.into_iter().next().unwrap_or_default().to_owned()
    });
    words.filter(|it| !it.is_empty()).collect()
}

/// Symbols of a shared library, all of which have this version.
fn exported(library: &Path, version: &str) -> BTreeSet<String> {
    let library = library.to_str().unwrap();
    let symbols = stdout(
        "nm",
        &["-D", "--defined-only", "--with-symbol-versions", library],
    );
    let mut exported = BTreeSet::new();
    for line in symbols.lines() {
        let name = line.split_whitespace().nth(2).unwrap();
        if name.starts_with(version) {
            continue; // the version itself
        }
        let (name, its) = name.split_once("@@").expect("a version");
        assert_eq!(its, version, "{name}");
        exported.insert(name.to_owned());
    }
    exported
}

/// Symbols that a list names.
fn mapped(map: &str) -> BTreeSet<String> {
    let lines = map.lines().filter_map(|line| line.strip_prefix('\t'));
    let names = lines.filter_map(|line| line.strip_suffix(';'));
    names.filter(|it| *it != "*").map(str::to_owned).collect()
}

/// The numbers that the header gives names to.
fn constants() -> Vec<String> {
    let names = HEADER
        .lines()
        .filter_map(|line| line.strip_prefix("#define "));
    let names = names.filter_map(|line| line.split_once(' '));
    names.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn every_symbol_is_declared_has_a_version_and_a_page_of_the_manual() {
    let prefix = installed();
    let library = prefix.path().join("lib/libquorumwire.so");
    let exported = exported(&library, "QUORUMWIRE_1.0");
    let mut declared = declared(HEADER);
    declared.retain(|it| it.starts_with("quorumwire_"));
    assert_eq!(exported, declared);
    assert_eq!(exported.len(), 15);
    assert_eq!(exported, mapped(MAP));
    let dynamic = stdout("readelf", &["-d", library.to_str().unwrap()]);
    assert!(
        dynamic.contains("soname: [libquorumwire.so.1]"),
        "{dynamic}"
    );
    have_pages(prefix.path(), &exported);
}

/// Each of these symbols has a page of the manual that declares it.
fn have_pages(prefix: &Path, symbols: &BTreeSet<String>) {
    let folder = prefix.join("share/man");
    for name in symbols {
        let page = folder.join(format!("man3/{name}.3"));
        let mut text = fs::read_to_string(&page).expect(name);
        if let Some(other) = text.strip_prefix(".so ") {
            text = fs::read_to_string(folder.join(other.trim())).expect(name);
        }
        let is_declared = ['(', ';']
            .iter()
            .any(|it| text.contains(&format!("{name}{it}")));
        assert!(is_declared, "{name}");
    }
}

#[test]
fn what_libpaxos_has_is_declared_exported_and_in_the_manual_and_nothing_else() {
    let prefix = installed();
    let library = prefix.path().join("lib/libquorumwire-evpaxos.so");
    let exported = exported(&library, "QUORUMWIRE_EVPAXOS_1.0");
    let mut declared: BTreeSet<String> =
        EVPAXOS_HEADERS.iter().flat_map(|it| declared(it)).collect();
    // The type of a function, and the only variable.
    declared.retain(|it| it.contains("paxos") || it.starts_with("ev"));
    declared.insert("paxos_config".to_owned());
    assert_eq!(exported, declared);
    assert_eq!(exported, mapped(EVPAXOS_MAP));
    have_pages(prefix.path(), &exported);
    let dynamic = stdout("readelf", &["-d", library.to_str().unwrap()]);
    let soname = "soname: [libquorumwire-evpaxos.so.1]";
    assert!(dynamic.contains(soname), "{dynamic}");
    // Both languages take the headers, alone and together, in any order.
    let include = format!("-I{}", folder().join("evpaxos").display());
    let source = prefix.path().join("both.c");
    for headers in [&["evpaxos"][..], &["paxos"], &["paxos", "evpaxos"]] {
        let lines = headers.iter().map(|it| format!("#include <{it}.h>\n"));
        fs::write(&source, lines.collect::<String>()).unwrap();
        for language in [&["-std=c99"][..], &["-x", "c++", "-std=c++11"]] {
            let rest = [&include, "-fsyntax-only", source.to_str().unwrap()];
            run("cc", &[language, &WARNINGS, &rest].concat());
        }
    }
}

/// What a program in C prints of each constant and of the struct.
fn printed(language: &[&str]) -> String {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut source =
        "#include <stdio.h>\n#include \"quorumwire.h\"\nint main(void)\n{\n".to_owned();
    let mut print = |name: &str, number: &str| {
        source.push_str("\tprintf(\"%s %ld\\n\", ");
        source.push_str(&[&format!("{name:?}"), ", (long)", number, ");\n"].concat());
    };
    for name in constants() {
        print(&name, &name);
    }
    print("size", "sizeof(quorumwire_recovered_t)");
    for field in ["instance", "value", "size", "state"] {
        print(field, &format!("offsetof(quorumwire_recovered_t, {field})"));
    }
    source += "\treturn 0;\n}\n";
    fs::write(path("print.c"), source).unwrap();
    let include = format!("-I{}", self::folder().display());
    let (from, to) = (path("print.c"), path("print"));
    let arguments = [language, &WARNINGS, &[&include, &from, "-o", &to]].concat();
    run("cc", &arguments);
    stdout(to, &[])
}

#[test]
fn constants_and_structs_are_those_of_the_library() {
    let codes = Code::ALL
        .iter()
        .map(|code| (code.name(), (*code as isize).cast_unsigned()));
    let states = [
        ("QUORUMWIRE_DECIDED", Recovered::DECIDED),
        ("QUORUMWIRE_NO_OP", Recovered::NO_OP),
        ("QUORUMWIRE_TRIMMED", Recovered::TRIMMED),
        ("QUORUMWIRE_NOT_DECIDED", Recovered::NOT_DECIDED),
    ];
    let states = states.map(|(name, state)| (name, (state as isize).cast_unsigned()));
    let layout = [
        ("size", size_of::<Recovered>()),
        ("instance", offset_of!(Recovered, instance)),
        ("value", offset_of!(Recovered, value)),
        ("size", offset_of!(Recovered, size)),
        ("state", offset_of!(Recovered, state)),
    ];
    let all = codes.chain(states).chain(layout);
    let lines = all.map(|(name, number)| format!("{name} {}\n", number.cast_signed()));
    let expected: String = lines.collect();
    assert_eq!(align_of::<Recovered>(), 8);
    assert_eq!(printed(&["-std=c99"]), expected);
    assert_eq!(printed(&["-x", "c++", "-std=c++11"]), expected);
}

const MISUSE: &str = r#"
#include <quorumwire.h>
#include <stdio.h>
#include <string.h>
#define REQUIRE(is_so) do { if (!(is_so)) { printf("%s\n", #is_so); return 1; } } while (0)
static char text[256];
static void delivered(void *context, uint64_t instance, const void *value, size_t size)
{
	(void)context; (void)instance; (void)value; (void)size;
}
int main(void)
{
	quorumwire_t *none = (quorumwire_t *)text, *handle = none;
	quorumwire_recovered_t recovered = { 0, NULL, 0, 0 };
	REQUIRE(quorumwire_open(NULL, NULL) == QUORUMWIRE_ERROR_ARGUMENT);
	REQUIRE(quorumwire_open(NULL, &handle) == QUORUMWIRE_ERROR_ARGUMENT && handle == NULL);
	REQUIRE(quorumwire_open("/nowhere", &handle) == QUORUMWIRE_ERROR_CONFIGURATION && handle == NULL);
	REQUIRE(quorumwire_last_error(NULL, text, sizeof(text)) > 0 && strstr(text, "/nowhere"));
	REQUIRE(quorumwire_last_error(NULL, NULL, 0) > 0);
	REQUIRE(quorumwire_close(NULL) == QUORUMWIRE_ERROR_HANDLE);
	REQUIRE(quorumwire_close(none) == QUORUMWIRE_ERROR_HANDLE);
	REQUIRE(quorumwire_submit(none, "a", 1, NULL, NULL) == QUORUMWIRE_ERROR_HANDLE);
	REQUIRE(quorumwire_submit_wait(none, "a", 1, NULL) == QUORUMWIRE_ERROR_HANDLE);
	REQUIRE(quorumwire_deliver(none, 1, 0, delivered, NULL) == QUORUMWIRE_ERROR_HANDLE);
	REQUIRE(quorumwire_poll(none, -1) == QUORUMWIRE_ERROR_HANDLE);
	REQUIRE(quorumwire_last_error(NULL, text, sizeof(text)) > 0 && strstr(text, "closed"));
	REQUIRE(quorumwire_hold(none, 1) == QUORUMWIRE_ERROR_HANDLE);
	REQUIRE(quorumwire_fd(none) == QUORUMWIRE_ERROR_HANDLE);
	REQUIRE(quorumwire_recover(none, 1, &recovered) == QUORUMWIRE_ERROR_HANDLE);
	REQUIRE(quorumwire_checkpoint(none, 1, 1, NULL) == QUORUMWIRE_ERROR_HANDLE);
	REQUIRE(quorumwire_declare_lost(none, 1, NULL) == QUORUMWIRE_ERROR_HANDLE);
	REQUIRE(quorumwire_value_bytes_max(none) == 0);
	quorumwire_recovered_free(NULL);
	quorumwire_recovered_free(&recovered);
	REQUIRE(strcmp(quorumwire_error_text(QUORUMWIRE_OK), "done") == 0);
	REQUIRE(strlen(quorumwire_error_text(4711)) > 0);
	printf("all was noticed\n");
	return 0;
}
"#;

#[test]
fn what_is_no_handle_is_noticed_by_the_archive_and_by_the_shared_library() {
    let prefix = installed();
    let path = |name: &str| prefix.path().join(name).display().to_string();
    fs::write(path("misuse.c"), MISUSE).unwrap();
    let config = |static_: &[&str]| {
        let found = Command::new("pkg-config")
            .args(static_)
            .args(["--cflags", "--libs", "quorumwire"])
            .env("PKG_CONFIG_PATH", path("lib/pkgconfig"))
            .output()
            .expect("pkg-config is there: tools/setup installs it");
        assert!(found.status.success(), "{found:?}");
        String::from_utf8(found.stdout).unwrap()
    };
    let (source, to) = (path("misuse.c"), path("misuse"));
    let shared = config(&[]);
    let rest: Vec<&str> = shared.split_whitespace().collect();
    let rpath = format!("-Wl,-rpath,{}", path("lib"));
    run(
        "cc",
        &[
            &["-std=c99"],
            &WARNINGS[..],
            &[&source, "-o", &to, &rpath],
            &rest,
        ]
        .concat(),
    );
    assert_eq!(stdout(&to, &[]), "all was noticed\n");
    // Only the archive is left.
    for name in ["lib/libquorumwire.so", "lib/libquorumwire.so.1"] {
        fs::remove_file(path(name)).unwrap();
    }
    let archive = config(&["--static"]);
    let rest: Vec<&str> = archive.split_whitespace().collect();
    run(
        "cc",
        &[&["-std=c99"], &WARNINGS[..], &[&source, "-o", &to], &rest].concat(),
    );
    assert_eq!(stdout(&to, &[]), "all was noticed\n");
}

/// Installed by unpacking them, a program finds all it needs in them, and says which of them it needs.
#[test]
fn debian_packages_have_what_a_program_needs() {
    let folder_of = TempDir::new().unwrap();
    let path = |name: &str| folder_of.path().join(name).display().to_string();
    let library = folder().join("../../packaging/library");
    let made = Command::new(library)
        .env("TO", path("packages"))
        .env("PROFILE", "dev")
        // To make them small takes longer than all else.
        .env("DPKG_DEB_COMPRESSOR_TYPE", "none")
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let packages = fs::read_dir(path("packages")).unwrap();
    let packages = packages.map(|it| it.unwrap().path().display().to_string());
    let mut packages: Vec<String> = packages.collect();
    packages.sort();
    assert_eq!(packages.len(), 2, "{packages:?}");
    for package in &packages {
        run("dpkg-deb", &["--extract", package, &path("root")]);
    }
    let (development, runtime) = (&packages[0], &packages[1]);
    let field = |package: &str, name: &str| stdout("dpkg-deb", &["--field", package, name]);
    assert_eq!(field(development, "Package"), "libquorumwire-dev\n");
    assert_eq!(field(runtime, "Package"), "libquorumwire1\n");
    let version = field(runtime, "Version");
    let needed = format!("libquorumwire1 (= {})", version.trim());
    assert!(field(development, "Depends").contains(&needed));

    let triplet = stdout("cc", &["-print-multiarch"]);
    let libraries = path(&format!("root/usr/lib/{}", triplet.trim()));
    for name in ["libquorumwire", "libquorumwire-evpaxos"] {
        let here = stdout("dpkg-deb", &["--contents", runtime]);
        assert!(here.contains(&format!("{name}.so.1 -> ")), "{name}: {here}");
        let shlibs = stdout("dpkg-deb", &["--info", runtime, "shlibs"]);
        assert!(shlibs.contains(&format!("{name} 1 libquorumwire1\n")));
        // Links that lead nowhere are no files.
        let links = ["so", "so.1", "a"].map(|end| format!("{libraries}/{name}.{end}"));
        assert!(links.iter().all(|it| Path::new(it).is_file()), "{links:?}");
    }
    let manual = path("root/usr/share/man/man3/quorumwire_submit.3.gz");
    assert!(Path::new(&manual).is_file());

    fs::write(path("misuse.c"), MISUSE).unwrap();
    let found = Command::new("pkg-config")
        .args(["--cflags", "--libs", "quorumwire"])
        .env("PKG_CONFIG_LIBDIR", format!("{libraries}/pkgconfig"))
        .env("PKG_CONFIG_SYSROOT_DIR", path("root"))
        .env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1")
        .env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1")
        .output()
        .unwrap();
    let flags = String::from_utf8(found.stdout).unwrap();
    let rest: Vec<&str> = flags.split_whitespace().collect();
    let rpath = format!("-Wl,-rpath,{libraries}");
    let (source, to) = (path("misuse.c"), path("misuse"));
    let words = [&["-std=c99", &source, "-o", &to, &rpath], &rest[..]].concat();
    run("cc", &words);
    assert_eq!(stdout(&to, &[]), "all was noticed\n");
}

const RUST: &str = include_str!("../src/ffi.rs");

/// What C calls this type of Rust, of a parameter of this name.
fn in_c(name: &str, of_rust: &str) -> &'static str {
    match of_rust {
        "*mut c_void" if name == "handle" => "quorumwire_t *",
        "*mut c_void" => "void *",
        "*const c_void" => "const void *",
        "*mut *mut c_void" => "quorumwire_t **",
        "*const c_char" => "const char *",
        "*mut c_char" => "char *",
        "*mut u64" => "uint64_t *",
        "*mut Recovered" => "quorumwire_recovered_t *",
        "Option<SubmittedFn>" => "quorumwire_submitted_fn",
        "Option<DeliveredFn>" => "quorumwire_delivered_fn",
        "usize" => "size_t",
        "u16" => "uint16_t",
        "u64" => "uint64_t",
        "c_int" => "int",
        "" => "void",
        _ => panic!("{name}: what is {of_rust} in C?"),
    }
}

/// Functions as the Rust has them, in C: what they give back, the name, and the types of the parameters.
fn functions_in_rust() -> BTreeSet<String> {
    let functions = RUST.split("extern \"C\" fn ").skip(1);
    let functions = functions.filter(|it| it.starts_with("quorumwire_"));
    let one = |text: &str| {
        let (name, rest) = text.split_once('(').expect("parameters");
        let (parameters, rest) = rest.split_once(')').expect("their end");
        let (back, _) = rest.split_once('{').expect("what it does");
        let back = back.trim().trim_start_matches("-> ");
        let parameters = parameters.split(',').map(str::trim);
        let parameters: Vec<_> = parameters
            .filter_map(|it| it.split_once(": "))
            .map(|(name, of)| in_c(name, of))
            .collect();
        format!("{} {name}({})", in_c("", back), parameters.join(", "))
    };
    functions.map(one).collect()
}

/// Functions as the header has them, in the same words.
fn functions_in_c() -> BTreeSet<String> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Without the name, which is the last word.
    let kind = |text: &str| {
        let text = words(text);
        let end = text.trim_end_matches(|it: char| it.is_ascii_alphanumeric() || it == '_');
        end.trim().to_owned()
    };
    let one = |text: &str| {
        let (head, parameters) = text.split_once('(')?;
        let name = head.rsplit([' ', '*', '\n']).next()?;
        let parameters = parameters.strip_suffix(')')?;
        let back = kind(head);
        let parameters: Vec<String> = parameters.split(',').map(kind).collect();
        name.starts_with("quorumwire_")
            .then(|| format!("{back} {name}({})", parameters.join(", ")))
    };
    let code = code(HEADER);
    let lines: Vec<&str> = code.lines().filter(|it| !it.starts_with('#')).collect();
    let code = lines.join("\n");
    let statements = code.split([';', '{', '}']);
    let statements = statements.filter(|it| !it.contains("typedef"));
    statements.filter_map(one).collect()
}

/// A compiler of C takes any header's word for what is behind it.
#[test]
fn parameters_and_results_are_of_the_same_types_on_both_sides() {
    let (rust, header) = (functions_in_rust(), functions_in_c());
    assert_eq!(rust, header);
    assert_eq!(rust.len(), 15);
    for (rust, c) in [
        (
            "SubmittedFn = extern \"C\" fn(*mut c_void, c_int, u64);",
            "(*quorumwire_submitted_fn)(void *context, int error, uint64_t instance);",
        ),
        (
            "DeliveredFn = extern \"C\" fn(*mut c_void, u64, *const c_void, usize);",
            "(*quorumwire_delivered_fn)(void *context, uint64_t instance, const void *value,\n\t\t\t\t\tsize_t size);",
        ),
    ] {
        assert!(RUST.contains(rust), "{rust}");
        assert!(HEADER.contains(c), "{c}");
    }
}
