// Package store declares the rows that every state store keeps and gives them typed methods.
//
// A kind of rows is declared once: its name, key, version, expiry, normal form and indexes (Spec). A database
// implements Backend, which is seven methods for rows of any kind and a few for what is no plain row: claims,
// reports, the history, leases and ids that are seen once. Store has the typed methods that the use cases' ports
// ask for, written once over a Backend.
//
// Packages memory, sqlite and dynamo are the databases, storetest is the conformance suite of all three, and
// token makes page tokens.
package store
