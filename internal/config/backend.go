package config

// Backend is where the hosts of a fleet run and its rows are kept.
type Backend string

// The backends.
const (
	// BackendAWS has hosts on EC2, rows in DynamoDB and messages in SQS.
	BackendAWS Backend = "aws"
	// BackendLocal has hosts as processes of this machine, and rows and messages in SQLite.
	BackendLocal Backend = "local"
)

// Backend is BackendAWS for a configuration with an aws section, and else BackendLocal.
func (c *Config) Backend() Backend {
	if c.AWS != nil {
		return BackendAWS
	}
	return BackendLocal
}
