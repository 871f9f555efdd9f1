//! Bodies as OpenAI-compatible servers send and take them, made up from a seed.
//!
//! Only the shapes are real: field names and their order as several servers write them. Every value and
//! every word is generated.

use serde_json::{Value, json};

/// Which body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    ChatStream,
    ChatWhole,
    ChatRequest,
    CompletionsStream,
    CompletionsWhole,
    CompletionsRequest,
}

/// Whose words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "training uses one voice, the figures compare both")]
pub(crate) enum Voice {
    /// Common English words.
    Plain,
    /// Letters at random: no language is as hard to compress.
    Invented,
}

/// Who sends: servers order and fill the same fields differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "training mixes them, the figures name those they compare")]
pub(crate) enum Server {
    OpenAi,
    LlamaCpp,
    Vllm,
    Ollama,
}

const WORDS: &str = "the of and to a in that is was he for it with as his on be at by had not are but from or \
have an they which one you were her all she there would their we him been has when who will more no if out \
so said what up its about into than them can only other new some could time these two may then do first any \
my now such like our over man me even most made after also did many before must through back years where much \
your way well down should because each just those people how too little state good very make world still own \
see men work long get here between both life being under never day same another know while last might us \
great old year off come since against go came right used take three file function return value error test \
line code result change run build should check list table model text window read write";

/// A generator of bodies.
pub(crate) struct Wire {
    state: u64,
    voice: Voice,
    server: Server,
}

impl Wire {
    #[allow(dead_code, reason = "training mixes servers, the figures name one")]
    pub(crate) fn new(seed: u64, voice: Voice) -> Self {
        let mut wire = Self { state: seed, voice, server: Server::OpenAi };
        wire.server = match wire.below(8) {
            0..=3 => Server::OpenAi,
            4 | 5 => Server::LlamaCpp,
            6 => Server::Vllm,
            _ => Server::Ollama,
        };
        wire
    }

    #[allow(dead_code, reason = "training mixes servers, the figures name one")]
    pub(crate) fn from_server(seed: u64, voice: Voice, server: Server) -> Self {
        Self { state: seed, voice, server }
    }

    /// One body with an answer (or a question) of so many tokens.
    pub(crate) fn body(&mut self, shape: Shape, tokens: usize) -> Vec<u8> {
        let text: Vec<String> = (0..tokens).map(|at| self.token(at)).collect();
        match shape {
            Shape::ChatStream => self.stream(&text, true),
            Shape::CompletionsStream => self.stream(&text, false),
            Shape::ChatWhole => self.whole(&text, true),
            Shape::CompletionsWhole => self.whole(&text, false),
            Shape::ChatRequest => self.chat_request(&text),
            Shape::CompletionsRequest => self.completions_request(&text),
        }
        .into_bytes()
    }

    fn stream(&mut self, text: &[String], chat: bool) -> String {
        let head = self.head(if chat { "chat.completion.chunk" } else { "text_completion" }, chat);
        let mut out = String::new();
        if chat {
            let opening = if self.server == Server::Vllm || self.server == Server::OpenAi {
                json!({"role":"assistant","content":"","refusal":null})
            } else {
                json!({"role":"assistant","content":null})
            };
            self.event(
                &mut out,
                &head,
                &json!({"index":0,"delta":opening,"logprobs":null,"finish_reason":null}),
            );
        }
        for token in text {
            let choice = match (chat, self.server) {
                (true, Server::LlamaCpp) => json!({"finish_reason":null,"index":0,"delta":{"content":token}}),
                (true, Server::Ollama) => {
                    json!({"index":0,"delta":{"role":"assistant","content":token},"finish_reason":null})
                }
                (true, _) => {
                    json!({"index":0,"delta":{"content":token},"logprobs":null,"finish_reason":null})
                }
                (false, _) => json!({"text":token,"index":0,"logprobs":null,"finish_reason":null}),
            };
            self.event(&mut out, &head, &choice);
        }
        let end = if chat {
            json!({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"})
        } else {
            json!({"text":"","index":0,"logprobs":null,"finish_reason":"stop"})
        };
        self.event(&mut out, &head, &end);
        let mut last = head;
        last["choices"] = json!([]);
        last["usage"] = self.usage(text.len());
        out.push_str(&format!("data: {last}\n\ndata: [DONE]\n\n"));
        out
    }

    fn event(&mut self, out: &mut String, head: &Value, choice: &Value) {
        let mut event = head.clone();
        event["choices"] = json!([choice]);
        if self.server == Server::OpenAi {
            event["usage"] = Value::Null;
        }
        if self.server == Server::OpenAi && choice.get("delta").is_some() {
            // Noise against guessing tokens by the sizes of packets: it cannot be compressed.
            let said = choice["delta"]["content"].as_str().map_or(0, str::len);
            event["obfuscation"] = json!(self.letters(14_usize.saturating_sub(said).max(1)));
        }
        out.push_str(&format!("data: {event}\n\n"));
    }

    fn whole(&mut self, text: &[String], chat: bool) -> String {
        let mut body = self.head(if chat { "chat.completion" } else { "text_completion" }, chat);
        let text = text.concat();
        body["choices"] = if chat {
            let message = json!({"role":"assistant","content":text,"refusal":null,"annotations":[]});
            json!([{"index":0,"message":message,"logprobs":null,"finish_reason":"stop"}])
        } else {
            json!([{"text":text,"index":0,"logprobs":null,"finish_reason":"length"}])
        };
        body["usage"] = self.usage(text.len() / 4);
        // OpenAI's own whole answers are indented.
        let pretty = self.server == Server::OpenAi;
        if pretty { serde_json::to_string_pretty(&body).unwrap_or_default() } else { body.to_string() }
    }

    fn head(&mut self, object: &str, chat: bool) -> Value {
        let prefix = if chat { "chatcmpl-" } else { "cmpl-" };
        let id = format!("{prefix}{}", self.letters(29));
        let created = 1_760_000_000 + self.below(40_000_000);
        let model = self.model();
        let mark = format!("fp_{}", self.hex(10));
        match self.server {
            Server::OpenAi => json!({"id":id,"object":object,"created":created,"model":model,
                "service_tier":"default","system_fingerprint":mark,"choices":null}),
            Server::LlamaCpp => json!({"choices":null,"created":created,"id":id,"model":model,
                "system_fingerprint":"b6500-local","object":object}),
            Server::Vllm => json!({"id":id,"object":object,"created":created,"model":model,"choices":null}),
            Server::Ollama => json!({"id":format!("{prefix}{}", self.below(1000)),"object":object,
                "created":created,"model":model,"system_fingerprint":"fp_ollama","choices":null}),
        }
    }

    fn usage(&mut self, tokens: usize) -> Value {
        let prompt = 20 + self.below(4000);
        let total = prompt + tokens as u64;
        if self.server == Server::OpenAi {
            json!({"prompt_tokens":prompt,"completion_tokens":tokens,"total_tokens":total,
                "prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},
                "completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,
                "accepted_prediction_tokens":0,"rejected_prediction_tokens":0}})
        } else {
            json!({"prompt_tokens":prompt,"completion_tokens":tokens,"total_tokens":total})
        }
    }

    fn chat_request(&mut self, text: &[String]) -> String {
        let system = format!("You are a helpful assistant. {}", self.sentence(12));
        let mut messages = vec![json!({"role":"system","content":system})];
        for _ in 0..self.below(3) {
            messages.push(json!({"role":"user","content":self.sentence(9)}));
            if self.below(2) == 0 {
                let call = format!("call_{}", self.letters(24));
                let arguments = json!({"path":format!("src/{}.rs", self.letters(6))}).to_string();
                messages.push(json!({"role":"assistant","content":null,"tool_calls":[{"id":call,
                    "type":"function","function":{"name":"read_file","arguments":arguments}}]}));
                messages.push(json!({"role":"tool","tool_call_id":call,"content":self.sentence(10)}));
            }
            messages.push(json!({"role":"assistant","content":self.sentence(14)}));
        }
        messages.push(json!({"role":"user","content":text.concat()}));
        let mut body = json!({"model":self.model(),"messages":messages,"stream":true,
            "stream_options":{"include_usage":true},"temperature":0.7,"max_tokens":4096});
        if self.below(2) == 0 {
            body["tools"] = json!([{"type":"function","function":{"name":"read_file",
                "description":self.sentence(8),"parameters":{"type":"object","properties":{
                "path":{"type":"string","description":self.sentence(6)},
                "offset":{"type":"integer","minimum":0}},"required":["path"],
                "additionalProperties":false}}}]);
            body["tool_choice"] = json!("auto");
        }
        body.to_string()
    }

    fn completions_request(&mut self, text: &[String]) -> String {
        json!({"model":self.model(),"prompt":text.concat(),"stream":true,
            "stream_options":{"include_usage":true},"temperature":1.0,"top_p":0.95,"n":1,
            "max_tokens":256,"logprobs":5,"stop":["\n\n"],"seed":self.below(1 << 31)})
        .to_string()
    }

    fn sentence(&mut self, words: usize) -> String {
        (0..words).map(|at| self.token(at)).collect::<String>() + "."
    }

    /// A token as a tokenizer cuts it: mostly a word with its space.
    fn token(&mut self, at: usize) -> String {
        match self.below(20) {
            0 => ",".to_owned(),
            1 => ".".to_owned(),
            2 => "\n\n".to_owned(),
            3 => self.word().chars().take(3).collect(),
            _ if at == 0 => self.word(),
            _ => format!(" {}", self.word()),
        }
    }

    fn word(&mut self) -> String {
        match self.voice {
            Voice::Plain => {
                let words: Vec<&str> = WORDS.split_whitespace().collect();
                // The smaller of two draws: common words are common.
                let (a, b) = (self.below(words.len() as u64), self.below(words.len() as u64));
                let pick = usize::try_from(a.min(b)).unwrap_or(0);
                words.get(pick).copied().unwrap_or("the").to_owned()
            }
            Voice::Invented => {
                let length = usize::try_from(2 + self.below(7)).unwrap_or(2);
                self.draw(b"abcdefghijklmnopqrstuvwxyz", length)
            }
        }
    }

    fn model(&mut self) -> &'static str {
        match self.server {
            Server::OpenAi => self.pick(&["gpt-4o-mini-2024-07-18", "gpt-4.1-2025-04-14", "gpt-5-mini"]),
            Server::LlamaCpp => self.pick(&["SmolLM2-135M-Instruct-Q8_0.gguf", "qwen3-4b-q8_0.gguf"]),
            Server::Vllm => self.pick(&["Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct"]),
            Server::Ollama => self.pick(&["llama3.2:3b", "qwen3:4b"]),
        }
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        let at = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        from.get(at).copied().unwrap_or_default()
    }

    fn letters(&mut self, n: usize) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        self.draw(LETTERS, n)
    }

    fn hex(&mut self, n: usize) -> String {
        self.draw(b"0123456789abcdef", n)
    }

    fn draw(&mut self, from: &[u8], n: usize) -> String {
        (0..n)
            .map(|_| usize::try_from(self.below(from.len() as u64)).unwrap_or(0))
            .map(|at| char::from(from.get(at).copied().unwrap_or(b'x')))
            .collect()
    }

    fn below(&mut self, n: u64) -> u64 {
        // SplitMix64: small, seeded, the same on every machine.
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n.max(1)
    }
}
