// Below a title, the link to a page as Markdown becomes a button that copies it.
for (const link of document.querySelectorAll('.ways-out a[href$=".md"]')) {
  if (!navigator.clipboard?.write) continue; // then the link stays
  const button = document.createElement("button");
  const say = (words) => { button.textContent = words; };
  const text = async () => {
    const answer = await fetch(link.href);
    if (!answer.ok) throw new Error(answer.statusText);
    return new Blob([await answer.text()], { type: "text/plain" });
  };
  button.type = "button";
  button.setAttribute("aria-live", "polite");
  say("Copy as Markdown");
  button.addEventListener("click", async () => {
    try {
      // The item is made at once and filled later: else Safari has forgotten the click.
      await navigator.clipboard.write([new ClipboardItem({ "text/plain": text() })]);
      say("Copied");
      setTimeout(say, 2000, "Copy as Markdown");
    } catch {
      location.assign(link.href);
    }
  });
  link.replaceWith(button);
}
