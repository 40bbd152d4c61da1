package bench

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	_ "modernc.org/sqlite" // the driver of the store

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// BenchmarkLimitCommits: what the driver of the embedded store does with no program around it: transactions of so many updates by key, of a row with a
// document as long as a record's, with the settings of the store.
func BenchmarkLimitCommits(b *testing.B) {
	for _, writes := range []int{1, 13} {
		b.Run(fmt.Sprintf("writes=%d", writes), func(b *testing.B) {
			file := "file:" + filepath.Join(b.TempDir(), "limit.db") + "?" + url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(NORMAL)", "cache_size(-8192)"}}.Encode()
			db, err := sql.Open("sqlite", file)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			conn, err := db.Conn(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			exec := func(query string, args ...any) {
				if _, err := conn.ExecContext(context.Background(), query, args...); err != nil {
					b.Fatal(err)
				}
			}
			doc := strings.Repeat("x", 900)
			exec("CREATE TABLE rows (key TEXT PRIMARY KEY, doc TEXT) STRICT")
			for i := range 512 {
				exec("INSERT INTO rows VALUES (?, ?)", hostID(i), doc)
			}
			update, err := conn.PrepareContext(b.Context(), "UPDATE rows SET doc = ? WHERE key = ?")
			if err != nil {
				b.Fatal(err)
			}
			used := cpu(b)
			b.ResetTimer()
			for i := range b.N {
				exec("BEGIN IMMEDIATE")
				for j := range writes {
					if _, err := update.ExecContext(context.Background(), doc, hostID((i*writes+j)%512)); err != nil {
						b.Fatal(err)
					}
				}
				exec("COMMIT")
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			b.ReportMetric(float64((cpu(b)-used).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// BenchmarkLimitEcho: calls of gRPC that do nothing, by so many callers.
func BenchmarkLimitEcho(b *testing.B) {
	for _, callers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			s := grpc.NewServer()
			grpc_health_v1.RegisterHealthServer(s, health.NewServer())
			var serving sync.WaitGroup
			serving.Go(func() {
				if err := s.Serve(listener); err != nil {
					b.Error(err)
				}
			})
			defer serving.Wait()
			defer s.Stop()
			conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			client := grpc_health_v1.NewHealthClient(conn)
			closedLoop(b, callers, "calls/s", func(int64) error {
				_, err := client.Check(b.Context(), &grpc_health_v1.HealthCheckRequest{})
				return err
			})
		})
	}
}

// BenchmarkLimitDynamoDB: calls of DynamoDB Local by so many callers with no program around them: updates by key of an item as long as a record.
func BenchmarkLimitDynamoDB(b *testing.B) {
	for _, callers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			client, table := dynamodb.NewFromConfig(awstest.Config(b, awstest.DynamoDB(b))), sdk.String("limit")
			if _, err := client.CreateTable(b.Context(), &dynamodb.CreateTableInput{
				TableName: table, BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: sdk.String("key"), AttributeType: types.ScalarAttributeTypeS}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: sdk.String("key"), KeyType: types.KeyTypeHash}},
			}); err != nil {
				b.Fatal(err)
			}
			doc := &types.AttributeValueMemberS{Value: strings.Repeat("x", 900)}
			closedLoop(b, callers, "calls/s", func(i int64) error {
				_, err := client.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: table, Item: map[string]types.AttributeValue{
					"key": &types.AttributeValueMemberS{Value: hostID(int(i % 512))}, "doc": doc,
				}})
				return err
			})
		})
	}
}

// closedLoop has so many callers make b.N calls in all, each the next one once it has an answer. unit is that of how many there are in a second.
func closedLoop(b *testing.B, callers int, unit string, call func(i int64) error) {
	b.Helper()
	used := cpu(b)
	var next atomic.Int64
	var calling sync.WaitGroup
	b.ResetTimer()
	for range callers {
		calling.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := call(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	calling.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), unit)
	b.ReportMetric(float64((cpu(b)-used).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// BenchmarkStart: from the start of `controld dev` on a new directory until it is ready, its stand-in of GitHub included, and the length of the programs.
func BenchmarkStart(b *testing.B) {
	bin, err := programs()
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for range b.N {
		began := time.Now()
		s, err := local.Start(b.Context(), local.Options{Bin: bin, StateDir: filepath.Join(b.TempDir(), "state")})
		took = append(took, time.Since(began))
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Stop(); err != nil {
			b.Fatal(err)
		}
	}
	for _, program := range []string{"controld", "agentd"} {
		info, err := os.Stat(filepath.Join(bin, program))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/1e6, program+"-MB")
	}
	reportLatency(b, took)
}

// BenchmarkCold: from the call of Provision to a registered host that was launched for it, on `controld dev`: a machine here is a process, and boots in no
// time.
func BenchmarkCold(b *testing.B) {
	s := startSystem(b)
	var took []time.Duration
	for i := range b.N {
		run := fmt.Sprint(i)
		began := time.Now()
		got, err := s.Fleet.Provision(b.Context(), &remudav1.ProvisionRequest{Repository: repository, RunId: run})
		if err != nil {
			b.Fatal(err)
		}
		if got.GetReusedCount() != 0 {
			b.Fatalf("run %s got a host that was there", run)
		}
		took = append(took, time.Since(began))
	}
	reportLatency(b, took)
}
