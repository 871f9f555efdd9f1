//! A model that continues with ` the sea`, and keeps the probabilities of two alternatives a token.

use async_trait::async_trait;
use model::openai_completions::OpenAiCompletions;
use model::{
    CallOrigin, Dialect, DialectName, EncodeError, EncodedRequest, Exchange, Model, ModelError, ModelInfo,
    PARSER_VERSION, Params, Prompt, RawResponse, SourceKind, Timings,
};

const BODY: &str = concat!(
    r#"data: {"id":"p1","choices":[{"text":" the","index":0,"logprobs":{"tokens":[" the"],"#,
    r#""token_logprobs":[-0.25],"top_logprobs":[{" a":-1.5," the":-0.25}]},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"id":"p1","choices":[{"text":" sea","index":0,"logprobs":{"tokens":[" sea"],"#,
    r#""token_logprobs":[-0.9],"top_logprobs":[{" sea":-0.9," hill":-1.1}]},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"id":"p1","choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}]}"#,
    "\n\ndata: [DONE]\n\n",
);

pub(crate) struct Probable(ModelInfo);

impl Default for Probable {
    fn default() -> Self {
        Self(ModelInfo {
            dialect: DialectName::OpenAiCompletions,
            prefill: false,
            logprobs: true,
            ..ModelInfo::local("test", "probable", 32_768, 1_024)
        })
    }
}

#[async_trait]
impl Model for Probable {
    fn info(&self) -> &ModelInfo {
        &self.0
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        OpenAiCompletions::default().encode(prompt, params, &self.0.name)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        _: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        exchange.spool.append(BODY.as_bytes()).unwrap();
        let mut events = Vec::new();
        let mut parser = request.dialect().parser(true);
        parser.feed(BODY.as_bytes(), &mut events).and_then(|()| parser.finish(&mut events)).unwrap();
        events.into_iter().for_each(|event| exchange.listener.event(event));
        Ok(RawResponse {
            status: 200,
            headers: Vec::new(),
            removed_headers: Vec::new(),
            body: BODY.as_bytes().to_vec().into(),
            streamed: true,
            timings: Timings { started_at: 0, head_ms: 0, first_byte_ms: Some(0), total_ms: 0 },
            attempt: 1,
            dialect: request.dialect(),
            parser_version: PARSER_VERSION,
            parsed: model::reparse(request.dialect(), BODY.as_bytes(), true),
            source: SourceKind::Local,
        })
    }
}
