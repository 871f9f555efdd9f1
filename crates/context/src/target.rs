//! Who a request is for: what it may hold depends on it.

use model::{DialectName, ModelInfo};

/// Bytes of a sound for which a token is counted: as many as a poor recording has for what the dearest provider
/// counts as one.
const BYTES_OF_A_SOUND_TOKEN: u64 = 250;

/// The model a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetModel {
    pub provider: String,
    /// The dialect it is asked in.
    pub dialect: DialectName,
    pub model: String,
    pub tools: bool,
    pub pictures: bool,
    pub sounds: bool,
}

impl TargetModel {
    /// As a model says of itself.
    pub fn of(model: &ModelInfo) -> Self {
        Self {
            provider: model.provider.clone(),
            dialect: model.dialect,
            model: model.name.clone(),
            tools: model.tools,
            pictures: model.images,
            sounds: model.audio && model.dialect.has_sounds(),
        }
    }

    /// Tokens of a picture: as many as the provider counts for the dearest shape of the largest that is sent, which
    /// has 1.2 megapixels and sides of 1,568 pixels. (Anthropic counts a token for 750 pixels; OpenAI tiles of 512
    /// pixels or patches of 32, times a factor for small models; Gemini tiles of its own.)
    pub(crate) fn picture_tokens(&self) -> u64 {
        let is = |part: &str| self.model.contains(part);
        if is("4o-mini") {
            48_200
        } else if is("-nano") {
            3_100
        } else if is("-mini") {
            2_200
        } else if is("gemini") {
            2_100
        } else {
            1_600
        }
    }

    /// Tokens of a sound of so many bytes.
    pub(crate) fn sound_tokens(bytes: u64) -> u64 {
        bytes.div_ceil(BYTES_OF_A_SOUND_TOKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_what_is_as_the_model_says_and_as_its_dialect_can() {
        let plain = ModelInfo::local("box", "m", 4_096, 512);
        let target = TargetModel::of(&plain);
        assert_eq!((target.pictures, target.sounds), (false, false));
        let all = ModelInfo { images: true, audio: true, ..plain };
        let target = TargetModel::of(&all);
        assert_eq!((target.pictures, target.sounds), (true, true));
        let deaf = ModelInfo { dialect: DialectName::AnthropicMessages, ..all };
        assert!(!TargetModel::of(&deaf).sounds);
    }

    #[test]
    fn small_models_count_more_for_a_picture() {
        let tokens = |model: &str| {
            let target = TargetModel::of(&ModelInfo::local("box", model, 4_096, 512));
            target.picture_tokens()
        };
        assert_eq!(tokens("claude-opus-4-8"), 1_600);
        assert!(tokens("gpt-5-nano") > tokens("gpt-5-mini") && tokens("gpt-5-mini") > tokens("gpt-5"));
        assert!(tokens("openai/gpt-4o-mini") > 40_000);
    }
}
