//! What scripts of other places use and these do not have, and what to do without it.

/// Explains an error about something that is not there, such as
/// `ReferenceError: setTimeout is not defined`; `None` for any other error.
pub(super) fn explain(message: &str) -> Option<&'static str> {
    if message.contains("could not load module") {
        return Some(NO_MODULES);
    }
    let rest = message.strip_prefix("ReferenceError: ")?;
    let name = rest.strip_suffix(" is not defined")?.trim_matches('\'');
    Some(match name {
        "setTimeout" | "setInterval" | "setImmediate" => {
            "scripts have no timers; `await` the calls of `tools`, and do without pauses"
        }
        "require" | "module" | "exports" | "process" | "Buffer" | "Deno" | "Bun" | "fs" | "os"
        | "path" | "std" => NO_MODULES,
        "fetch" | "XMLHttpRequest" | "WebSocket" | "axios" => {
            "scripts have no network; call a function of `tools` that fetches"
        }
        "Intl" => "scripts have no locales; write it with toFixed, padStart and slice",
        "crypto" => "scripts have no randomness: pass what is needed in `inputs`",
        "performance" => "scripts have no clock: pass the time in `inputs`",
        "URL" | "URLSearchParams" | "TextEncoder" | "TextDecoder" | "atob" | "btoa"
        | "structuredClone" | "queueMicrotask" | "window" | "document" | "navigator" => {
            "scripts have the JavaScript language alone, without what browsers and Node.js add"
        }
        _ => return None,
    })
}

const NO_MODULES: &str = "scripts have no modules, files or processes; call functions of `tools`, which \
                          `tools.find(\"…\")` finds";
