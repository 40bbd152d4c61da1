package top

// Ticked is the message that an interval is over.
var Ticked = ticked{}
