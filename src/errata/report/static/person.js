// The name that answers are saved under: typed once in the bar, and remembered by this browser.
const person = document.getElementById("person");
const personName = () => person?.value.trim() || "somebody";

try {
  if (person && !person.value) person.value = localStorage.getItem("errata-person") ?? "";
  person?.addEventListener("change", () => localStorage.setItem("errata-person", person.value.trim()));
} catch { /* private mode: the name lasts for this page */ }
