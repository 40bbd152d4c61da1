package cache

// Source is what GitHub says that a run was started by. It stays the same through all attempts of the run.
type Source struct {
	// Event is GitHub's name of it, such as push.
	Event string
	// Branch is the run's head_branch: a branch, or a tag, or for a pull request the branch that it comes from, maybe of a fork.
	Branch string
	// SHA is the commit.
	SHA string
	// RepositoryID is the run's repository, and HeadRepositoryID that of the commit: another one is a fork. 0: GitHub did not say.
	RepositoryID, HeadRepositoryID int64
}

// Branch is what GitHub says of a branch and a commit.
type Branch struct {
	// Protected: the branch is protected.
	Protected bool
	// Has: the commit is on the branch.
	Has bool
}
