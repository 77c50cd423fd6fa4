// A shop's stock and its visitors, kept in quorumwire through ordinary Redis and memcached clients.
//
//	stock -redis HOST:PORT,... -memcached HOST:PORT,...
//
// Name all replicas: any of them serves, and when one is gone the next is asked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/redis/go-redis/v9"
)

// connect makes a client that dials one replica after the other until one answers.
func connect(addresses []string) *redis.Client {
	var turn uint32
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		var err error
		for range addresses {
			address := addresses[int(atomic.AddUint32(&turn, 1)-1)%len(addresses)]
			var conn net.Conn
			dialer := net.Dialer{Timeout: time.Second}
			if conn, err = dialer.DialContext(ctx, network, address); err == nil {
				return conn, nil
			}
		}
		return nil, err
	}
	return redis.NewClient(&redis.Options{
		Dialer:      dial,
		ReadTimeout: 6 * time.Second,
		// An increment that is sent again may be done twice: only who can tell may try again.
		MaxRetries: -1,
	})
}

// sell takes articles out of stock if there are enough. A transaction that somebody else got ahead of is made
// anew. After any other error whether they were sold is not known: look before selling again.
func sell(ctx context.Context, client *redis.Client, article string, count int64) (bool, error) {
	key := "stock:" + article
	for {
		enough := false
		err := client.Watch(ctx, func(tx *redis.Tx) error {
			left, err := tx.Get(ctx, key).Int64()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			enough = left >= count
			if !enough {
				return nil
			}
			_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.DecrBy(ctx, key, count)
				pipe.IncrBy(ctx, "sold", count)
				return nil
			})
			return err
		}, key)
		if !errors.Is(err, redis.TxFailedErr) {
			return enough, err
		}
	}
}

// visit counts a visit of today, which is forgotten after a day, through memcached's protocol.
func visit(address string) (uint64, error) {
	client := memcache.New(address)
	client.Timeout = 6 * time.Second
	err := client.Add(&memcache.Item{Key: "visits", Value: []byte("0"), Expiration: 24 * 60 * 60})
	if err != nil && !errors.Is(err, memcache.ErrNotStored) {
		return 0, err
	}
	return client.Increment("visits", 1)
}

func main() {
	redisAddresses := flag.String("redis", "127.0.0.1:6379", "`HOST:PORT,...` for Redis clients")
	memcachedAddresses := flag.String("memcached", "127.0.0.1:11211", "`HOST:PORT,...` for memcached clients")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client := connect(strings.Split(*redisAddresses, ","))
	defer client.Close()

	must(client.Set(ctx, "stock:lamp", 3, 0).Err())
	var sold []bool
	for i := 0; i < 2; i++ {
		done, err := sell(ctx, client, "lamp", 2)
		must(err)
		sold = append(sold, done)
	}
	fmt.Println("sold two lamps, twice:", sold)
	must(client.Set(ctx, "offer", "lamps", time.Minute).Err())
	left, err := client.TTL(ctx, "offer").Result()
	must(err)
	fmt.Println("the offer ends in", left)
	fmt.Println("left:", client.Get(ctx, "stock:lamp").Val())
	for _, address := range strings.Split(*memcachedAddresses, ",") {
		count, err := visit(address)
		must(err)
		fmt.Println("visitor", count)
	}
	// What memcached clients wrote is there for Redis clients, and the other way round.
	fmt.Println("visits:", client.Get(ctx, "visits").Val())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
