// transparency-dev's own client of C2SP's tlog-witness, as a command: the witness's URL, the file of a checkpoint, the
// old size, and the hashes of the consistency proof in base64. It prints the witness's signature lines, or the size that
// the witness says it knows.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"

	client "github.com/transparency-dev/witness/client/http"
	"github.com/transparency-dev/witness/witness"
)

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: client URL CHECKPOINT OLD [HASH..]")
	}
	if err := submit(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		log.Fatal(err)
	}
}

func submit(address, path, old string, lines []string) error {
	prefix, err := url.Parse(address)
	if err != nil {
		return err
	}
	checkpoint, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	size, err := strconv.ParseUint(old, 10, 64)
	if err != nil {
		return err
	}
	var proof [][]byte
	for _, line := range lines {
		hash, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			return err
		}
		proof = append(proof, hash)
	}
	asked := client.NewWitness(prefix, http.DefaultClient)
	signatures, known, err := asked.Update(context.Background(), size, checkpoint, proof)
	if errors.Is(err, witness.ErrCheckpointStale) {
		fmt.Printf("conflict: %d\n", known)
		return nil
	}
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(signatures)
	return err
}
