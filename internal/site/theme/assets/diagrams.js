// Diagrams have the size at which they can be read, and scroll: the theme would shrink the rooms of the code to the width of the text.
const initialize = mermaid.initialize;
mermaid.initialize = (config) => initialize({ ...config, flowchart: { useMaxWidth: false } });
