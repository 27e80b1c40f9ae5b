/**
 * Was a round dealt as it was committed?  The check of `verify_round.py`, section by section, for a browser.
 *
 * Everything is computed where it runs, by WebCrypto; nothing is imported and nothing is fetched. A browser offers
 * WebCrypto to pages from https and from the machine itself (127.0.0.1, localhost) only.
 *
 *     import { verifyRound } from "./verify_round.mjs";
 *     const receipt = await (await fetch(`/v1/rounds/${id}/proof`, { headers })).json();
 *     const { holds, problems, cards } = await verifyRound(receipt, { commitment: noted });
 *
 * A receipt is what `JSON.parse` makes of it, which hides two things that `verify_round.py` finds: a member that is
 * there twice, and a whole number that is written as a fraction.
 */

// 1. The form of a receipt.  What it need not have it may not have: nothing would vouch for it.

const HASH = '"[0-9a-f]{64}"';
const CARDS = String.raw`\["[2-9TJQKA][cdhs]","[2-9TJQKA][cdhs]","[2-9TJQKA][cdhs]"\]`;
const RECEIPT = { // each value's canonical JSON must be this regular expression
  protocol: '"casino-brag-deal-1"',
  round_id: '"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"',
  state: '"(settled|voided|expired)"',
  game: '"[a-z0-9-]{1,60}"',
  rules_digest: HASH,
  rng_digest: HASH,
  commitment: { number: "[1-9][0-9]*", value: HASH, previous: `(${HASH}|null)` },
  seed: '"[0-9a-f]{96}"',
  audit: { leaf_hash: HASH, entry: '".*"' },
};
const DEALT = { // and these, unless the commitment expired before anything was dealt
  client_seed: String.raw`("([!#-[\]-~]|\\["\\]){1,128}"|null)`,
  client_seeds: '"(allowed|off)"',
  deal_index: "[0-9]+",
  discards: "[0-9]+",
  player_cards: CARDS,
  dealer_cards: CARDS,
};
const LOGGED = { // and this, once the log has the round's entry
  leaf_index: "[0-9]+",
  tree_size: "[1-9][0-9]*",
  proof: String.raw`\[("[A-Za-z0-9+/]{43}=",?)*\]`,
  checkpoint: '".*"',
  verifier_keys: String.raw`\[("[!#-[\]-~]+",?)*\]`,
};
const NESTED_MAX = 32;

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const member = (value, name) => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined);

/** The one text of a JSON value (RFC 8785), or empty for undefined. Throws for what receipts never hold. */
function canonical(value, depth = NESTED_MAX) {
  if (value === undefined) return "";
  if (value === null || typeof value === "boolean" || Number.isSafeInteger(value)) return JSON.stringify(value);
  if (typeof value === "string" && !/\p{Surrogate}/u.test(value)) return JSON.stringify(value);
  if (Array.isArray(value) && depth) return `[${value.map((item) => canonical(item, depth - 1)).join(",")}]`;
  if (isObject(value) && depth) {
    const names = Object.keys(value).sort();
    return `{${names.map((name) => `${canonical(name)}:${canonical(value[name], depth - 1)}`).join(",")}}`;
  }
  throw new RangeError("a fraction, too large a number, half a character, or nested too deeply");
}

/** What is missing, too much, or not of its form. */
function formProblems(receipt) {
  const expired = member(receipt, "state") === "expired";
  const form = expired ? { ...RECEIPT } : { ...RECEIPT, ...DEALT };
  const inclusion = member(receipt, "inclusion");
  if (inclusion !== undefined) form.inclusion = inclusion === null ? "null" : LOGGED;
  const problems = misformed("", receipt, form);
  if (problems.length) return problems;
  if (!expired && receipt.client_seeds === "off" && receipt.client_seed !== null) {
    problems.push("client_seed is given, but client_seeds is off");
  }
  if ((receipt.commitment.number === 1) !== (receipt.commitment.previous === null)) {
    problems.push("commitment.previous must be null for number 1, and for no other");
  }
  return problems;
}

/** The same for one value; the receipt itself has no name. */
function misformed(name, value, form) {
  if (typeof form === "string") {
    let fits;
    try {
      fits = new RegExp(`^(?:${form})$`, "s").test(canonical(value));
    } catch {
      fits = false;
    }
    return fits ? [] : [`${name} is ${value === undefined ? "missing" : `not of its form: ${form}`}`];
  }
  if (!isObject(value)) {
    return [`${name || "the receipt"} is ${value === undefined ? "missing" : "not a JSON object"}`];
  }
  const unknown = Object.keys(value).filter((inner) => !Object.hasOwn(form, inner));
  const known = Object.entries(form);
  return [
    ...unknown.map((inner) => `${name || "the receipt"} has an unknown member ${ascii(inner)}`),
    ...known.flatMap(([inner, is]) => misformed(name ? `${name}.${inner}` : inner, member(value, inner), is)),
  ];
}

/** A text in quotation marks, which shows what else would not be seen. */
function ascii(text) {
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, escaped);
}

// 2. The commitment: one hash, of parts that each have their length in front.

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));
const utf8 = (text) => new TextEncoder().encode(text);

/** The arrays, one after the other. */
function joined(...arrays) {
  const whole = new Uint8Array(arrays.reduce((size, array) => size + array.length, 0));
  let place = 0;
  for (const array of arrays) {
    whole.set(array, place);
    place += array.length;
  }
  return whole;
}

/** A number in so many bytes, the highest first. */
function big(number, size) {
  return unhex(BigInt(number).toString(16).padStart(2 * size, "0"));
}

/** Each part after its length in four bytes, so that the end of one cannot pass for the start of the next. */
function parts(...arrays) {
  return joined(...arrays.flatMap((array) => [big(array.length, 4), array]));
}

async function sha256(data) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", data));
}

/** What the commitment's value has to be. */
async function commitmentValue(receipt) {
  const { number, previous } = receipt.commitment;
  return hex(
    await sha256(
      parts(
        utf8("casino-brag commitment 1"),
        unhex(receipt.round_id.replaceAll("-", "")),
        unhex(receipt.rules_digest),
        big(number, 8),
        unhex(previous ?? ""),
        unhex(receipt.seed),
      ),
    ),
  );
}

/** Whether this is a commitment to this round, these rules and this seed. */
async function commitmentProblems(receipt) {
  if (receipt.commitment.value === (await commitmentValue(receipt))) return [];
  return ["commitment.value is not the hash of this round, these rules, number, previous and seed"];
}

// 3. The words: HMAC_DRBG with SHA-256 (NIST SP 800-90A rev. 1, 10.1.2), made of both seeds for this round alone.

async function hmac(key, data) {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key, algorithm, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, data));
}

/** The generator's answers to requests of eight bytes, as numbers. */
async function* childWords(receipt) {
  let key = new Uint8Array(32);
  let value = new Uint8Array(32).fill(1);

  async function update(data) {
    for (const mark of data.length ? [0, 1] : [0]) {
      key = await hmac(key, joined(value, [mark], data));
      value = await hmac(key, value);
    }
  }

  const entropyAndNonce = unhex(receipt.seed); // 32 and 16 bytes
  const clientSeed = receipt.client_seed;
  const personalization = parts(
    utf8("casino-brag deal 1"),
    unhex(receipt.round_id.replaceAll("-", "")),
    unhex(receipt.rules_digest),
    clientSeed === null ? [] : await sha256(utf8(clientSeed)),
  );
  await update(joined(entropyAndNonce, personalization));
  for (;;) {
    value = await hmac(key, value);
    yield BigInt(`0x${hex(value.subarray(0, 8))}`);
    await update([]);
  }
}

// 4. The deal: a word becomes the number of a deal, each as likely as the next, and the number becomes six cards.

const DEALS = 52n * 51n * 50n * 49n * 48n * 47n;
const LIMIT = 2n ** 64n - (2n ** 64n % DEALS); // words from here on are discarded: they would favour the lowest deals
const WORDS_MAX = 64;

/** The deal's number, and how many words (each a BigInt) were discarded to get it. */
export async function dealIndex(words) {
  let discards = 0;
  for await (const word of words) {
    if (word < LIMIT) return [Number(word % DEALS), discards];
    discards += 1;
    if (discards === WORDS_MAX) break;
  }
  throw new RangeError(`${WORDS_MAX} words in a row are to be discarded, which no seed is known to do`);
}

/** The player's three cards and the dealer's: a shuffle of the pack that ends after six cards. */
export function cards(index) {
  const picks = [];
  for (const remaining of [47, 48, 49, 50, 51, 52]) { // the last card's pick is the lowest digit
    picks.unshift(index % remaining);
    index = Math.floor(index / remaining);
  }
  const pack = [..."23456789TJQKA"].flatMap((rank) => [..."cdhs"].map((suit) => rank + suit));
  picks.forEach((pick, place) => {
    [pack[place], pack[place + pick]] = [pack[place + pick], pack[place]];
  });
  return { player: pack.slice(0, 3), dealer: pack.slice(3, 6) };
}

/** Whether both seeds give this deal. */
async function dealProblems(receipt) {
  const [index, discards] = await dealIndex(childWords(receipt));
  const { player, dealer } = cards(index);
  const deal = { deal_index: index, discards, player_cards: player, dealer_cards: dealer };
  return Object.entries(deal)
    .map(([name, value]) => [name, canonical(value), canonical(receipt[name])])
    .filter(([, given, said]) => given !== said)
    .map(([name, given, said]) => `${name}: the seeds give ${given}, the receipt says ${said}`);
}

// 5. The audit entry: the text whose hash is the leaf of the casino's log.  It must say what the receipt says.

/** Whether the leaf hash is that of the entry. */
async function leafProblems(receipt) {
  const hash = await sha256(joined([0], utf8(receipt.audit.entry)));
  return receipt.audit.leaf_hash === hex(hash) ? [] : ["audit.leaf_hash is not the hash of audit.entry"];
}

/** Whether the entry can be read in one way only, and agrees. */
function entryProblems(receipt) {
  let entry;
  let readsOneWay;
  try {
    entry = JSON.parse(receipt.audit.entry);
    readsOneWay = canonical(entry) === receipt.audit.entry;
  } catch {
    readsOneWay = false;
  }
  if (!readsOneWay) {
    return ["audit.entry is not canonical JSON (RFC 8785) of texts and whole numbers"];
  }
  const kind = receipt.state === "expired" ? "commitment.expired" : `round.${receipt.state}`;
  const expected = {
    type: kind,
    "subjects.round_id": receipt.round_id,
    "payload.paytable_digest": receipt.rules_digest,
  };
  for (const name of ["game", "rng_digest", "commitment", "seed", ...Object.keys(DEALT)]) {
    expected[`payload.${name}`] = receipt[name];
  }
  return Object.entries(expected)
    .filter(([path, value]) => canonical(path.split(".").reduce(member, entry)) !== canonical(value))
    .map(([path]) => `audit.entry: ${path} is not what the receipt says`);
}

// 6. The log: a Merkle tree (RFC 9162, section 2.1) that has the leaf, if the receipt says where.

/** Whether the hashes of the proof lead from the leaf to the root in the checkpoint. */
async function inclusionProblems(receipt) {
  const { leaf_index, tree_size, proof, checkpoint } = receipt.inclusion;
  const lines = checkpoint.split("\n");
  if (lines[1] !== String(tree_size) || !(leaf_index < tree_size)) {
    return ["inclusion: the checkpoint is not one of tree_size entries, or the leaf is not among them"];
  }
  let place = leaf_index;
  let last = tree_size - 1;
  let under = unhex(receipt.audit.leaf_hash);
  const up = () => { // whole numbers up to 2^53, for which >> is too short
    place = Math.floor(place / 2);
    last = Math.floor(last / 2);
  };
  for (const encoded of proof) {
    const beside = Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
    if (last === 0) return ["inclusion.proof has more hashes than the way to the root"];
    if (place % 2 === 1 || place === last) {
      under = await sha256(joined([1], beside, under));
      while (place % 2 === 0 && place) up();
    } else {
      under = await sha256(joined([1], under, beside));
    }
    up();
  }
  if (last || lines[2] !== btoa(String.fromCharCode(...under))) {
    return ["inclusion.proof does not lead from the leaf to the root in the checkpoint"];
  }
  return [];
}

// 7. One receipt, and several of a series.

/**
 * Checks one receipt. `commitment` is the value that was noted before staking: without it, nothing shows that the
 * commitment was there beforehand. `cards` are those that the seeds give; none where nothing was dealt, and where the
 * receipt is not of its form. Throws where there is no WebCrypto, and for a `commitment` that can be none.
 */
export async function verifyRound(receipt, { commitment } = {}) {
  if (!globalThis.crypto?.subtle) {
    throw new Error("the browser offers no WebCrypto to this page: open it by https, or from 127.0.0.1");
  }
  const noted = commitment === undefined ? undefined : String(commitment).toLowerCase();
  if (noted !== undefined && !/^[0-9a-f]{64}$/.test(noted)) {
    throw new TypeError("the value of a commitment has 64 hexadecimal digits: give all of them");
  }
  const problems = formProblems(receipt);
  if (problems.length) return { holds: false, problems, cards: { player: [], dealer: [] } };
  const dealt = receipt.state !== "expired";
  problems.push(...(await commitmentProblems(receipt)));
  if (noted !== undefined && receipt.commitment.value !== noted) {
    problems.push("commitment.value is not the one that was noted before staking");
  }
  if (dealt) problems.push(...(await dealProblems(receipt)));
  problems.push(...(await leafProblems(receipt)), ...entryProblems(receipt));
  if (receipt.inclusion) problems.push(...(await inclusionProblems(receipt)));
  const [index] = dealt ? await dealIndex(childWords(receipt)) : [];
  return { holds: !problems.length, problems, cards: dealt ? cards(index) : { player: [], dealer: [] } };
}

/**
 * Checks receipts of one game that one player played for one kind of money: each of them, and that their commitments
 * follow one another without a gap.
 */
export async function verifyChain(receipts) {
  const problems = receipts.length ? [] : ["no receipt is given"];
  for (const [place, receipt] of receipts.entries()) {
    const found = await verifyRound(receipt);
    problems.push(...found.problems.map((problem) => `receipt ${place + 1}: ${problem}`));
  }
  if (!receipts.some((receipt) => formProblems(receipt).length)) problems.push(...chainProblems(receipts));
  return { holds: !problems.length, problems };
}

/** Whether the receipts, put in order, are links of one chain. Their form has been checked. */
function chainProblems(receipts) {
  const problems = [];
  if (new Set(receipts.map((receipt) => receipt.game)).size > 1) {
    problems.push("chain: the receipts are of different games, and each game has a chain of its own");
  }
  const commitments = receipts.map((receipt) => receipt.commitment).sort((a, b) => a.number - b.number);
  commitments.slice(1).forEach((after, place) => {
    const before = commitments[place];
    if (after.number === before.number) problems.push(`chain: number ${after.number} is there twice`);
    else if (after.number > before.number + 1) problems.push(`chain: number ${before.number + 1} is missing (GET /v1/commitments lists it)`);
    else if (after.previous !== before.value) {
      problems.push(`chain: number ${after.number} does not follow number ${before.number}`);
    }
  });
  return problems;
}
