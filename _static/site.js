// In place of an element, a button that copies a text. Where nothing can be copied, it stays.
const copies = (element, words, text, otherwise) => {
  if (!navigator.clipboard?.write) return;
  const button = document.createElement("button");
  const say = (words) => { button.textContent = words; };
  const blob = async () => new Blob([await text()], { type: "text/plain" });
  button.type = "button";
  button.className = element.className;
  button.setAttribute("aria-live", "polite");
  say(words);
  button.addEventListener("click", async () => {
    try {
      // The item is made at once and filled later: else Safari has forgotten the click.
      await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob() })]);
      say("Copied");
      setTimeout(say, 2000, words);
    } catch {
      otherwise(button);
    }
  });
  element.replaceWith(button);
};

// Below a title, the link to the page as Markdown.
for (const link of document.querySelectorAll('.ways-out a[href$=".md"]')) {
  const text = async () => {
    const answer = await fetch(link.href);
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.text();
  };
  copies(link, "Copy as Markdown", text, () => location.assign(link.href));
}

// Below code to copy, the fold with all that it needs.
for (const fold of document.querySelectorAll("details.with-imports")) {
  const words = fold.querySelector("summary").textContent;
  const text = () => fold.querySelector("pre").textContent;
  copies(fold, words, text, (button) => { fold.open = true; button.replaceWith(fold); });
}
