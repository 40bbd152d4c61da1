package awstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/safefile"
)

// accessKeys are those of the tests that run at the moment. DynamoDB Local keeps a database for each access
// key as long as it runs, with nine threads, which take 3 ms of processor time a second. So the next test
// gets the access key, and the emptied database, of one that is over.
var accessKeys struct {
	mu   sync.Mutex
	last int
	// free are the access keys of tests that are over; their databases are empty.
	free []string
	// used: this test binary uses DynamoDB Local, so the databases must be emptied.
	used bool
	// locks of access keys that no other test binary may use; each stays open.
	locks map[string]*os.File
}

// takeAccessKey is an access key that no other test uses at the moment.
func takeAccessKey() (string, error) {
	accessKeys.mu.Lock()
	defer accessKeys.mu.Unlock()
	if n := len(accessKeys.free); n > 0 {
		key := accessKeys.free[n-1]
		accessKeys.free = accessKeys.free[:n-1]
		return key, nil
	}
	for {
		accessKeys.last++
		key := accessKey(accessKeys.last)
		locked, err := lock(key)
		if err != nil {
			return "", err
		}
		if !locked {
			continue
		}
		// Another test binary may have ended without emptying it.
		if accessKeys.used && len(accessKeys.locks) > 0 {
			return key, empty(key)
		}
		return key, nil
	}
}

// giveAccessKeyBack is called when no request of the test is under way any longer.
func giveAccessKeyBack(key string) error {
	accessKeys.mu.Lock()
	used := accessKeys.used
	accessKeys.mu.Unlock()
	if used {
		if err := empty(key); err != nil {
			return err // and the key is not used again
		}
	}
	accessKeys.mu.Lock()
	defer accessKeys.mu.Unlock()
	accessKeys.free = append(accessKeys.free, key)
	return nil
}

// lock locks an access key until this process ends. It reports false if another test
// binary has it: test binaries that share DynamoDB Local share no database.
func lock(key string) (bool, error) {
	dir := sharedDir()
	if dir == "" {
		return true, nil
	}
	file, free, err := safefile.TryLock(filepath.Join(dir, key))
	if err != nil || !free {
		return false, err
	}
	if accessKeys.locks == nil {
		accessKeys.locks = map[string]*os.File{}
	}
	accessKeys.locks[key] = file
	return true, nil
}

// useDynamoDB notes that this test binary uses DynamoDB Local from now on. It empties
// the databases of the access keys that were taken before.
func useDynamoDB() error {
	accessKeys.mu.Lock()
	defer accessKeys.mu.Unlock()
	if accessKeys.used {
		return nil
	}
	for key := range accessKeys.locks {
		if err := empty(key); err != nil {
			return err
		}
	}
	accessKeys.used = true
	return nil
}

// emptyTimeout is for a machine that is busy.
const emptyTimeout = time.Minute

// empty deletes all tables of a database.
func empty(key string) error {
	endpoint, err := sharedDynamoDB()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), emptyTimeout)
	defer cancel()
	client := dynamodb.New(dynamodb.Options{
		Region: region, BaseEndpoint: &endpoint, Credentials: credentialsOf(key),
		// DynamoDB Local leaves it out of some answers, which the SDK then logs.
		DisableValidateResponseChecksum: true,
	})
	for {
		listed, err := client.ListTables(ctx, nil)
		if err != nil {
			return fmt.Errorf("empty a database: %w", err)
		}
		if len(listed.TableNames) == 0 {
			return nil
		}
		for _, table := range listed.TableNames {
			if err := unprotect(ctx, client, table); err != nil {
				return err
			}
			_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table})
			// An index of it may be under construction for a moment.
			if busy := new(types.ResourceInUseException); errors.As(err, &busy) {
				time.Sleep(lookEvery)
			} else if gone := new(types.ResourceNotFoundException); err != nil && !errors.As(err, &gone) {
				return fmt.Errorf("empty a database: %w", err)
			}
		}
	}
}

// unprotect has a table be deleted.
func unprotect(ctx context.Context, client *dynamodb.Client, table string) error {
	described, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if gone := new(types.ResourceNotFoundException); errors.As(err, &gone) {
		return nil
	}
	if err == nil && sdk.ToBool(described.Table.DeletionProtectionEnabled) {
		_, err = client.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &table, DeletionProtectionEnabled: sdk.Bool(false)})
	}
	if busy := new(types.ResourceInUseException); err != nil && !errors.As(err, &busy) {
		return fmt.Errorf("unprotect a table: %w", err)
	}
	return nil
}

// accessKey is made of letters and digits, as DynamoDB Local wants them; AWS's own keys have 20.
func accessKey(n int) string { return "AKIATEST" + fmt.Sprintf("%012s", strconv.Itoa(n)) }
