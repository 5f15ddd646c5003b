// The page of the search. INDEX, which tools/site/search.py makes when the site is built, says how
// well each word describes each place; here that is added up over the words of a query.
"use strict";

const MOST_SHOWN = 30; // places
const WITH_EXCERPT = 10; // of them
const LENGTH = 240; // of an excerpt, in letters
const WHOLE_NAME = 300; // what a query counts that is one of the names in pages/search.toml

// The stems of a query, as words_of in tools/site/search.py finds them in a text.
function wordsOf(text) {
  const stemmer = new Stemmer();
  const found = [];
  for (const run of text.match(/[\p{L}\p{N}_./:+'-]+/gu) ?? []) {
    const word = run.replace(/^[./:+'-]+|[./:+'-]+$/g, "").toLowerCase();
    const parts = word.split(/[_./:+'-]+/);
    for (const part of parts.length > 1 ? [word, ...parts] : parts)
      if (part.length > 1 && !stopwords.has(part)) found.push(stemmer.stemWord(part));
  }
  return [...new Set(found)];
}

// The numbers of the places that have words of the query, the best first.
function find(query) {
  const words = wordsOf(query);
  const scores = new Map();
  const known = new Map();
  for (const word of words) {
    const best = new Map();
    for (const term of termsOf(word)) {
      const share = term === word ? 1 : 0.5; // only the beginning was typed
      const found = INDEX.terms[term];
      for (let i = 0; i < found.length; i += 2)
        best.set(found[i], Math.max(best.get(found[i]) ?? 0, share * found[i + 1]));
    }
    for (const [place, score] of best) {
      scores.set(place, (scores.get(place) ?? 0) + score);
      known.set(place, (known.get(place) ?? 0) + 1);
    }
  }
  for (const [place, count] of known)
    scores.set(place, scores.get(place) * Math.sqrt(count / words.length));
  for (const place of INDEX.names[[...words].sort().join(" ")] ?? [])
    scores.set(place, (scores.get(place) ?? 0) + WHOLE_NAME);
  return [...scores.keys()].sort((a, b) => scores.get(b) - scores.get(a) || a - b);
}

function termsOf(word) {
  if (Object.hasOwn(INDEX.terms, word)) return [word];
  return Object.keys(INDEX.terms).filter((term) => term.startsWith(word));
}

// Words of the site that differ from a typed one in a letter or two.
function closest(word) {
  const near = Object.keys(INDEX.terms).map((term) => [distance(word, term), term]);
  return near.filter(([far]) => far <= 2).sort(([a], [b]) => a - b).slice(0, 3).map(([, term]) => term);
}

function distance(one, other) {
  if (Math.abs(one.length - other.length) > 2) return 3;
  let row = [...Array(other.length + 1).keys()];
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++)
      next[j] = Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (one[i - 1] !== other[j - 1]));
    row = next;
  }
  return row[other.length];
}

// The part of a text that has most of the words, in whole words.
function excerptOf(text, typed) {
  const lower = text.toLowerCase();
  let [start, most] = [0, 0];
  for (const word of typed)
    for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + 1)) {
      const first = Math.max(0, at - LENGTH / 4);
      const part = lower.slice(first, first + LENGTH);
      const count = typed.filter((other) => part.includes(other)).length;
      if (count > most) [start, most] = [first, count];
    }
  let said = text.slice(start, start + LENGTH);
  if (start) said = `...${said.replace(/^\S*\s/, "")}`;
  if (start + LENGTH < text.length) said = `${said.replace(/\s\S*$/, "")}...`;
  return said;
}

function has(place, word) {
  const known = (term) => INDEX.terms[term]?.some((number, i) => i % 2 === 0 && number === place);
  const words = wordsOf(word);
  return words.length > 0 && words.every(known);
}

function element(name, className, text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}

function itemOf(place, typed, withExcerpt) {
  const [page, anchor, title, heading, text] = INDEX.places[place];
  const item = element("li", "kind-title");
  const link = element("a", "", heading === title ? title : `${title} > ${heading}`);
  link.href = `${page}.html#${anchor}`;
  item.append(link);
  if (withExcerpt) {
    const context = element("p", "context", excerptOf(text, typed));
    const seen = `${link.textContent} ${text}`.toLowerCase();
    const inCode = typed.filter((word) => !seen.includes(word) && has(place, word));
    if (inCode.length) context.append(` In its code: ${inCode.join(", ")}`);
    for (const word of typed) _highlightText(context, word, "highlighted");
    item.append(context);
  }
  return item;
}

function show(query) {
  const output = document.getElementById("search-results");
  const found = find(query);
  const typed = query.toLowerCase().split(/\s+/).filter((word) => word.length > 1 && !stopwords.has(word));
  const said = found.length
    ? `Search finished, found ${found.length} places.`
    : "Your search did not match any place. Close words, and the table of questions: ";
  const summary = element("p", "search-summary", said);
  if (!found.length) {
    for (const near of wordsOf(query).flatMap(closest)) {
      const link = element("a", "", near);
      link.href = `search.html?q=${encodeURIComponent(near)}`;
      summary.append(link, " ");
    }
    const questions = element("a", "", "which section of which lesson?");
    questions.href = "index.html#which-section-of-which-lesson";
    summary.append(questions);
  }
  const list = element("ul", "search");
  list.setAttribute("role", "list");
  for (const [rank, place] of found.slice(0, MOST_SHOWN).entries())
    list.append(itemOf(place, typed, rank < WITH_EXCERPT));
  output.replaceChildren(element("h2", "", "Search Results"), summary, list);
}

document.addEventListener("DOMContentLoaded", () => {
  const query = new URLSearchParams(location.search).get("q");
  if (!query) return;
  for (const field of document.querySelectorAll('input[name="q"]')) field.value = query;
  show(query);
});
