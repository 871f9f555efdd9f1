//! Which names there are: providers, and models of the catalogue by the providers through which they are asked.

use model::catalogue::{self, Entry};
use text::terminal::one_line;

use crate::config::Config;

/// Every provider that can be named, those of the configuration first.
pub(crate) fn providers(config: &Config) -> Vec<&str> {
    let known =
        model::providers().iter().map(|row| row.name).filter(|name| !config.providers.contains_key(*name));
    config.providers.keys().map(String::as_str).chain(known).collect()
}

/// The models of the catalogue that can be asked without a section, with their rows; families have none.
pub(crate) fn catalogue(config: &Config) -> impl Iterator<Item = (String, Entry)> + '_ {
    providers(config).into_iter().flat_map(|provider| {
        let entries = catalogue::family(provider).map_or(&[][..], |family| &family.entries);
        let whole = entries.iter().filter(|entry| !entry.is_family());
        whole.map(move |entry| (format!("{provider}/{}", entry.name), *entry))
    })
}

/// What a name without a provider may mean, in full.
pub(crate) fn of_bare(config: &Config, name: &str) -> Vec<String> {
    let is_it = |full: &&String| full.split_once('/').is_some_and(|(_, model)| model == name);
    let mut found: Vec<String> = config.models.keys().filter(is_it).cloned().collect();
    let makers = catalogue::makers(name);
    let asked = providers(config).into_iter();
    let asked =
        asked.filter(|provider| catalogue::family(provider).is_some_and(|f| makers.contains(&f.provider)));
    found.extend(asked.map(|provider| format!("{provider}/{name}")));
    found.sort();
    found.dedup();
    found
}

/// The name someone may have meant.
pub(crate) fn nearest(config: &Config, name: &str) -> Option<String> {
    let near = |known: &str, typed: &str| {
        let distance = strsim::damerau_levenshtein(known, typed);
        (distance <= typed.len() / 4 + 1).then_some(distance)
    };
    let found = match name.split_once('/') {
        // Of a provider that is not known the provider is looked for; its models may be any.
        Some((provider, model)) => {
            let known =
                providers(config).into_iter().filter_map(|known| Some((near(known, provider)?, known)));
            known.min().map(|(_, known)| format!("{known}/{model}"))
        }
        None => {
            let bare = |full: &str| full.split_once('/').map_or(full, |(_, model)| model).to_owned();
            let own = weights::table::TABLE.iter().map(|weights| weights.name.to_owned());
            let all = own.chain(catalogue(config).map(|(full, _)| full));
            let all = all.filter_map(|full| Some((near(&bare(&full), name)?, full)));
            all.min().map(|(_, full)| full)
        }
    };
    found.filter(|_| !name.is_empty())
}

/// What to say of a model the catalogue does not know and knows a neighbour of; nothing where the owner has said what
/// it is. It is no error: providers have new models.
pub(crate) fn doubt(config: &Config, full: &str) -> Option<String> {
    if config.models.contains_key(full) {
        return None;
    }
    let meant = nearest_of(config, full)?;
    Some(format!("unknown model {}: did you mean {meant}? Its window is assumed", one_line(full)))
}

/// The name of a model of this provider that someone may have meant, where the catalogue knows its models and not
/// this one.
pub(crate) fn nearest_of(config: &Config, full: &str) -> Option<String> {
    let (provider, model) = full.split_once('/')?;
    let prefix = format!("{provider}/");
    if catalogue::find(provider, model).is_some_and(|known| !known.entry.is_family()) {
        return None;
    }
    let all = catalogue(config).filter(|(known, _)| known.starts_with(&prefix));
    let near = all.map(|(known, _)| (strsim::damerau_levenshtein(&known, full), known)).min()?;
    (near.0 > 0 && near.0 <= model.len() / 3).then_some(near.1)
}
