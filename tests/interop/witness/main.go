// A C2SP tlog-witness, from transparency-dev's own library, that knows one provider: every log whose origin line is
// <origin>/<something>, under the provider's key. It follows no rule of rag-audit's; it sees logs that must only grow.
//
// It listens on a port of the loopback interface that the system chooses, prints one line of JSON ({address, vkey}) and
// serves until its standard input ends.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"

	f_note "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/witness/persistence/inmemory"
	"github.com/transparency-dev/witness/witness"
	"golang.org/x/mod/sumdb/note"
)

func main() {
	origin := flag.String("origin", "", "the provider's origin; each log below it is the provider's")
	vkey := flag.String("vkey", "", "the provider's key")
	name := flag.String("name", "", "this witness's name")
	flag.Parse()
	if err := serve(*origin, *vkey, *name); err != nil {
		log.Fatal(err)
	}
}

func serve(origin, vkey, name string) error {
	provider, err := note.NewVerifier(vkey)
	if err != nil {
		return fmt.Errorf("the provider's key: %w", err)
	}
	secret, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return err
	}
	signer, err := f_note.NewSignerForCosignatureV1(secret)
	if err != nil {
		return err
	}
	cosigning, err := f_note.VKeyToCosignatureV1(public)
	if err != nil {
		return err
	}
	member, err := witness.New(context.Background(), witness.Opts{
		Persistence: inmemory.New(),
		Signers:     []note.Signer{signer},
		VerifierForLog: func(_ context.Context, line string) (note.Verifier, bool, error) {
			window, found := strings.CutPrefix(line, origin+"/")
			return provider, found && window != "", nil
		},
	})
	if err != nil {
		return err
	}
	handler := http.NewServeMux()
	handler.HandleFunc("POST /add-checkpoint", witness.NewHTTPHandler(member).AddCheckpoint)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	line := map[string]string{"address": listener.Addr().String(), "vkey": cosigning}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
