// A long list of pages is scrolled to the one that is open.
document.querySelector(".sidebar-tree .current-page > a")?.scrollIntoView({ block: "nearest" });
