//! Imports inside of functions.
//!
//! A module that is loaded is an item of `sys.modules`. One that is not is imported for real while the frame is evaluated, and
//! the frame is then evaluated anew: the code of a module runs once and for good, as in plain Python. The exception is a module
//! whose own code raises: Python forgets it, so the frame's first call, which is left to plain Python, runs that code again.

use std::rc::Rc;

use super::{Evaluator, Frame, Run, Stop};
use crate::host::{Kind, Object, Raised};
use crate::source::Source;
use crate::value::Value;

impl Evaluator<'_, '_> {
    /// `import name`, inside a function.
    pub(super) fn import(&mut self, frame: &Frame, name: &str, from: &Value, level: &Value) -> Run<Value> {
        let modules = self.host.member("sys", "modules").ok_or_else(|| self.stop("sys.modules is missing"))?;
        let full = self.full_name(frame, name, level)?;
        let wanted =
            if self.is_none(from) { full.split('.').next().unwrap_or_default().to_owned() } else { full.clone() };
        if self.loaded_module(modules, &full)?.is_none() {
            return Err(self.import_now(&full));
        }
        let Some(module) = self.loaded_module(modules, &wanted)? else {
            return Err(self.stop(format!("an import of {wanted}, which sys.modules does not have")));
        };
        self.import_submodules(modules, &module, &wanted, from)?;
        Ok(module)
    }

    /// The name of a module without dots in front.
    fn full_name(&mut self, frame: &Frame, name: &str, level: &Value) -> Run<String> {
        let level = self.index_of(level)?;
        if level == 0 {
            return Ok(name.to_owned());
        }
        let package = match self.read_global(frame.globals, &"__package__".into()) {
            Some(package) => match self.admit(&package)? {
                Value::Known(package, _) => self.host.as_str(package),
                _ => None,
            },
            None => None,
        };
        let package = package.ok_or_else(|| self.stop("a relative import outside of a package"))?;
        let mut parts: Vec<&str> = package.split('.').collect();
        for _ in 1..level {
            parts.pop();
        }
        let base = parts.join(".");
        Ok(if name.is_empty() { base } else { format!("{base}.{name}") })
    }

    /// What `sys.modules` has of this name.
    fn loaded_module(&mut self, modules: Object, name: &str) -> Run<Option<Value>> {
        let found = self.read_key(modules, &Rc::new(Source::Fixed(modules)), name);
        found.map(|found| self.admit(&found)).transpose()
    }

    /// As `from package import name` does, imports the modules among the names.
    fn import_submodules(&mut self, modules: Object, package: &Value, name: &str, from: &Value) -> Run<()> {
        let Value::Known(object, _) = package else { return Ok(()) };
        if self.is_none(from) || self.host.kind(*object) != Kind::Module || self.constant(*object, "__path__").is_err()
        {
            return Ok(());
        }
        for wanted in self.items_of(from)? {
            let Value::Known(text, _) = wanted else { continue };
            let Some(wanted) = self.host.as_str(text).filter(|wanted| &**wanted != "*") else { continue };
            let full = format!("{name}.{wanted}");
            if self.attribute_if_any(package, &wanted)?.is_some() || self.loaded_module(modules, &full)?.is_some() {
                continue;
            }
            // Where there is no such module the name is looked up next, which raises.
            match self.import_now(&full) {
                Stop::Raise(_) => {}
                stop => return Err(stop),
            }
        }
        Ok(())
    }

    /// Imports a module that is not loaded yet. That runs its code, once and for good; the frame is then evaluated anew. Where the
    /// frame has changed something before, the module could tell, and the import is left to plain Python.
    fn import_now(&mut self, full: &str) -> Stop {
        let import = self.host.member("importlib", "import_module");
        let import = import.filter(|_| self.count_effects() == 0);
        let Some(import) = import else {
            return self.stop_with(format!("an import of {full}"), "import it at the top of the file");
        };
        let name = self.host.str(full);
        match self.host.call(import, &[name], &[]) {
            Ok(_) => {
                self.again = true;
                self.stop(format!("an import of {full}"))
            }
            Err(raised) if self.is_about(&raised, full) => self.raised(raised),
            Err(_) => self.stop(format!("an import of {full}, which fails")),
        }
    }

    /// Whether what an import raised says that there is no such module: nothing of it has run.
    fn is_about(&self, raised: &Raised, full: &str) -> bool {
        let name = self.constant(raised.0, "name").ok().and_then(|name| self.host.as_str(name));
        self.host.class_name(self.host.class_of(raised.0)) == "builtins.ModuleNotFoundError"
            && name.is_some_and(|name| *name == *full || full.starts_with(&format!("{name}.")))
    }

    /// `name` of `from module import name`: an attribute, or a module that is loaded.
    pub(super) fn import_from(&mut self, module: &Value, name: &Rc<str>) -> Run<Value> {
        if let Some(value) = self.attribute_if_any(module, name)? {
            return Ok(value);
        }
        let modules = self.host.member("sys", "modules").ok_or_else(|| self.stop("sys.modules is missing"))?;
        let Value::Known(package, _) = module else { return Err(self.stop("an import from what is no module")) };
        let package = self.constant(*package, "__name__").ok().and_then(|name| self.host.as_str(name));
        let package = package.ok_or_else(|| self.stop("a module without a name"))?;
        if let Some(value) = self.loaded_module(modules, &format!("{package}.{name}"))? {
            return Ok(value);
        }
        let import = self.host.polyfill("import_from").ok_or_else(|| self.stop("a missing function"))?;
        let (package, name) = (self.host.str(&package), self.host.str(name));
        match self.host.call(import, &[package, name], &[]) {
            Ok(_) => Err(self.stop("an import of what is there only the second time")),
            Err(raised) => Err(self.raised(raised)),
        }
    }

    /// How many things the frame has changed that others could see.
    pub(super) fn count_effects(&self) -> usize {
        self.changed.len()
            + self.class_items.len()
            + self.globals.len()
            + self.context_variables.len()
            + self.setters_called.len()
            + self.settings_set.len()
            + self.left.len()
    }
}
