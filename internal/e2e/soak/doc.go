// Package soak puts the whole system under fire: controld processes that share a store serve a load, while one of them is killed, stopped, cut off,
// given a wrong clock or a full disk. What callers and hosts saw is checked for linearizability with porcupine. Another test holds the embedded
// default with many hosts for an hour and looks whether anything grows. All but the check of histories is behind the tag soak: make soak runs it.
package soak
