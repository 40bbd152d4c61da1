// Package model holds the rows of runner services, of their jobs and of their workers, with the rules that change
// them. It is to services what lifecycle is to hosts: pure, and shared by the use-cases, the stores and the adapters.
package model
