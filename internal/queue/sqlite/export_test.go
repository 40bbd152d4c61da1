package sqlite

// TakeVisible is the statement of a receive.
const TakeVisible = takeVisible
