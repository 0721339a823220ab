//! What the user asked for: sets of topics, and levels of logs, from text.

use crate::event::Level;
use crate::topic::{TOPICS, Topic, TopicKind, UnknownTopic};

/// A set of topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Topics(u32);

impl Topics {
    /// None.
    pub const NONE: Self = Self(0);

    /// All.
    pub const ALL: Self = Self(u32::MAX);

    /// A set from words with commas between them, as `PYRITE_COMPILE_DEBUG` and `--trace` take them: `1` and `all` stand
    /// for all, a name adds a topic, a name after `-` leaves one out. What begins with leaving out begins with all.
    pub fn parse(text: &str) -> Result<Self, UnknownTopic> {
        let words = || text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let starts_with_all = words().next().is_some_and(|word| word.starts_with('-'));
        let mut set = if starts_with_all { Self::ALL } else { Self::NONE };
        for word in words() {
            match word {
                "1" | "all" | "true" => set = Self::ALL,
                "0" | "none" | "false" => set = Self::NONE,
                _ => {
                    let (name, add) = word.strip_prefix('-').map_or((word, true), |name| (name, false));
                    let topic = Topic::named(name).ok_or_else(|| UnknownTopic::new(name))?;
                    set = if add { Self(set.0 | topic.bit()) } else { Self(set.0 & !topic.bit()) };
                }
            }
        }
        Ok(set)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Whether a topic is in it.
    pub fn contains(self, topic: Topic) -> bool {
        self.0 & topic.bit() != 0
    }

    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

/// From which level on each topic is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLevels(Vec<Option<Level>>);

/// Only what the user should look at.
impl Default for LogLevels {
    fn default() -> Self {
        let level = |kind| if kind == TopicKind::Component { Some(Level::Warning) } else { None };
        Self(TOPICS.iter().map(|row| level(row.kind)).collect())
    }
}

impl LogLevels {
    /// Levels from words with commas between them, as `PYRITE_LOGS` takes them: a name shows information, `+name`
    /// everything, `-name` errors only; an artifact is shown or, with `-`, not. `all` stands for every name.
    pub fn parse(text: &str) -> Result<Self, UnknownTopic> {
        let mut levels = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (level, name) = match word.split_at_checked(1) {
                Some(("+", name)) => (Level::Debug, name),
                Some(("-", name)) => (Level::Error, name),
                _ => (Level::Info, word),
            };
            if name == "all" {
                TOPICS.iter().for_each(|row| levels.set(row.topic, level));
            } else {
                levels.set(Topic::named(name).ok_or_else(|| UnknownTopic::new(name))?, level);
            }
        }
        Ok(levels)
    }

    /// Logs a topic from a level on.
    pub fn set(&mut self, topic: Topic, level: Level) {
        let hidden = topic.row().kind == TopicKind::Artifact && level > Level::Info;
        self.0[topic as usize] = if hidden { None } else { Some(level) };
    }

    /// Whether a line of a topic is logged.
    pub fn shows(&self, topic: Topic, level: Level) -> bool {
        self.0[topic as usize].is_some_and(|least| level >= least)
    }

    /// The topics of which more than warnings are logged.
    pub(crate) fn bits(&self) -> u32 {
        let shown = TOPICS.iter().filter(|row| self.shows(row.topic, Level::Info));
        shown.fold(0, |bits, row| bits | row.topic.bit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_can_be_left_out_one_by_one() {
        let all = Topics::parse("1").unwrap();
        assert!(all.contains(Topic::OutputCode) && all.contains(Topic::Timings));
        let without = Topics::parse("1,-output_code").unwrap();
        assert!(!without.contains(Topic::OutputCode) && without.contains(Topic::Guards));
        assert!(Topics::parse("-output_code").unwrap().contains(Topic::Guards));
        let only = Topics::parse("guards, timings").unwrap();
        assert!(only.contains(Topic::Guards) && !only.contains(Topic::OutputCode));
        assert!(Topics::parse("0").unwrap().is_empty() && Topics::parse("").unwrap().is_empty());
        assert_eq!(Topics::parse("1,-output").unwrap_err().name, "output");
    }

    #[test]
    fn logs_are_quiet_unless_asked() {
        let quiet = LogLevels::default();
        assert!(!quiet.shows(Topic::Capture, Level::Info) && quiet.shows(Topic::Capture, Level::Warning));
        assert_eq!(quiet.bits(), 0);
        let levels = LogLevels::parse("capture, +aot,-debug,graph_code").unwrap();
        assert!(levels.shows(Topic::Capture, Level::Info) && !levels.shows(Topic::Capture, Level::Debug));
        assert!(levels.shows(Topic::Aot, Level::Debug));
        assert!(!levels.shows(Topic::Debug, Level::Warning) && levels.shows(Topic::Debug, Level::Error));
        assert!(levels.shows(Topic::GraphCode, Level::Info) && !levels.shows(Topic::Guards, Level::Info));
        assert!(LogLevels::parse("-graph_code").unwrap().0[Topic::GraphCode as usize].is_none());
        assert_eq!(LogLevels::parse("graph_kode").unwrap_err().near, ["graph_code"]);
    }
}
