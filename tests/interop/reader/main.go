// Reads what rag-audit exports with the tools of the Go ecosystem alone.
//
//	reader tlog-proof FILE ENTRY ORIGIN LOG-VKEY WITNESS-VKEY..   prints the index, the size and how many cosigned
//	reader tiles FOLDER ORIGIN LOG-VKEY                           prints the size and the SHA-256 of all entries in order
//	reader checkpoint FILE ORIGIN LOG-VKEY WITNESS-VKEY..         prints the size and who of the named signed
//	reader grown OLD-CHECKPOINT FOLDER ORIGIN LOG-VKEY            prints both sizes, if the folder's log extends the old one
//	reader consistent OLD-CHECKPOINT CHECKPOINT ORIGIN LOG-VKEY HASH..  the same by a proof that others made, in base64
package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	f_log "github.com/transparency-dev/formats/log"
	f_note "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/formats/proof"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("reader tlog-proof | tiles | checkpoint | grown | consistent ..")
	}
	var err error
	switch arguments := os.Args[2:]; {
	case os.Args[1] == "tlog-proof" && len(arguments) >= 4:
		err = readProof(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4:])
	case os.Args[1] == "tiles" && len(arguments) == 3:
		err = readTiles(arguments[0], arguments[1], arguments[2])
	case os.Args[1] == "checkpoint" && len(arguments) >= 3:
		err = readCheckpoint(arguments[0], arguments[1], arguments[2], arguments[3:])
	case os.Args[1] == "grown" && len(arguments) == 4:
		err = readGrown(arguments[0], arguments[1], arguments[2], arguments[3])
	case os.Args[1] == "consistent" && len(arguments) >= 4:
		err = readConsistent(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4:])
	default:
		err = errors.New("usage")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// open reads a checkpoint of one log, signed by its key; signatures by other keys than these are left out.
func open(text []byte, origin, vkey string, witnesses []string) (*f_log.Checkpoint, *note.Note, error) {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return nil, nil, err
	}
	var others []note.Verifier
	for _, text := range witnesses {
		other, err := f_note.NewVerifierForCosignatureV1(text)
		if err != nil {
			return nil, nil, err
		}
		others = append(others, other)
	}
	head, _, opened, err := f_log.ParseCheckpoint(text, origin, verifier, others...)
	return head, opened, err
}

func readCheckpoint(file, origin, vkey string, witnesses []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, opened, err := open(text, origin, vkey, witnesses)
	if err != nil {
		return err
	}
	line := fmt.Sprint(head.Size)
	for _, signature := range opened.Sigs {
		line += " " + signature.Name
	}
	fmt.Println(line)
	return nil
}

// openBoth reads the checkpoints of an earlier and of a later tree.
func openBoth(older, newer, origin, vkey string) (heads [2]*f_log.Checkpoint, err error) {
	for i, path := range []string{older, newer} {
		text, err := os.ReadFile(path)
		if err != nil {
			return heads, err
		}
		if heads[i], _, err = open(text, origin, vkey, nil); err != nil {
			return heads, err
		}
	}
	return heads, nil
}

func checkGrown(proof tlog.TreeProof, old, now *f_log.Checkpoint) error {
	return tlog.CheckTree(proof, int64(now.Size), tlog.Hash(now.Hash), int64(old.Size), tlog.Hash(old.Hash))
}

// readGrown makes the consistency proof from the folder's tiles, as a client of the log would.
func readGrown(file, root, origin, vkey string) error {
	heads, err := openBoth(file, filepath.Join(root, "checkpoint"), origin, vkey)
	if err != nil {
		return err
	}
	old, now := heads[0], heads[1]
	tree := tlog.Tree{N: int64(now.Size), Hash: tlog.Hash(now.Hash)}
	proof, err := tlog.ProveTree(tree.N, int64(old.Size), tlog.TileHashReader(tree, folder(root)))
	if err != nil {
		return err
	}
	if err := checkGrown(proof, old, now); err != nil {
		return err
	}
	fmt.Println(old.Size, now.Size)
	return nil
}

// readConsistent takes the consistency proof from the command line.
func readConsistent(older, newer, origin, vkey string, hashes []string) error {
	heads, err := openBoth(older, newer, origin, vkey)
	if err != nil {
		return err
	}
	proof := make(tlog.TreeProof, len(hashes))
	for i, text := range hashes {
		hash, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(hash) != len(proof[i]) {
			return fmt.Errorf("not a hash in base64: %q", text)
		}
		proof[i] = tlog.Hash(hash)
	}
	if err := checkGrown(proof, heads[0], heads[1]); err != nil {
		return err
	}
	fmt.Println(heads[0].Size, heads[1].Size)
	return nil
}

func readProof(file, entryFile, origin, vkey string, witnesses []string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var read proof.TLogProof
	if err := read.Unmarshal(data); err != nil {
		return err
	}
	entry, err := os.ReadFile(entryFile)
	if err != nil {
		return err
	}
	head, opened, err := open(read.Checkpoint, origin, vkey, witnesses)
	if err != nil {
		return err
	}
	path := make(tlog.RecordProof, len(read.Hashes))
	for i, hash := range read.Hashes {
		path[i] = hash
	}
	leaf := tlog.RecordHash(entry)
	if err := tlog.CheckRecord(path, int64(head.Size), tlog.Hash(head.Hash), int64(read.Index), leaf); err != nil {
		return err
	}
	fmt.Println(read.Index, head.Size, len(opened.Sigs)-1)
	return nil
}

// folder is a tlog.TileReader of a C2SP tlog-tiles folder: Go's paths name the height too.
type folder string

func (folder) Height() int                         { return 8 }
func (folder) SaveTiles(_ []tlog.Tile, _ [][]byte) {}
func (f folder) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range tiles {
		data, err := os.ReadFile(filepath.Join(string(f), "tile", strings.TrimPrefix(tile.Path(), "tile/8/")))
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

func readTiles(root, origin, vkey string) error {
	text, err := os.ReadFile(filepath.Join(root, "checkpoint"))
	if err != nil {
		return err
	}
	head, _, err := open(text, origin, vkey, nil)
	if err != nil {
		return err
	}
	tree := tlog.Tree{N: int64(head.Size), Hash: tlog.Hash(head.Hash)}
	hashes := tlog.TileHashReader(tree, folder(root))
	all := sha256.New()
	for at := int64(0); at < tree.N; {
		width := min(256, tree.N-at)
		// A tile of level 0 and the bundle of the same entries have one number.
		name := (tlog.Tile{H: 8, L: 0, N: at / 256, W: int(width)}).Path()
		bundle, err := os.ReadFile(filepath.Join(root, "tile", "entries", strings.TrimPrefix(name, "tile/8/0/")))
		if err != nil {
			return err
		}
		for ; width > 0; width-- {
			if len(bundle) < 2 || len(bundle) < 2+int(bundle[0])<<8+int(bundle[1]) {
				return errors.New("truncated entry bundle")
			}
			size := 2 + int(bundle[0])<<8 + int(bundle[1])
			entry := bundle[2:size]
			bundle = bundle[size:]
			path, err := tlog.ProveRecord(tree.N, at, hashes)
			if err != nil {
				return err
			}
			if err := tlog.CheckRecord(path, tree.N, tree.Hash, at, tlog.RecordHash(entry)); err != nil {
				return fmt.Errorf("entry %d: %w", at, err)
			}
			all.Write(entry)
			at++
		}
		if len(bundle) != 0 {
			return errors.New("entry bundle with more entries")
		}
	}
	fmt.Println(head.Size, hex.EncodeToString(all.Sum(nil)))
	return nil
}
