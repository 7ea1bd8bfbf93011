// Command gnark proves bench/groth16.py's chain of products with gnark: `gnark CONSTRAINTS`.
// It prints wall and processor seconds of the second of two proofs, and the process's peak memory, as JSON.
package main

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/logger"
)

const public = 7

// Chain has three products of two-term combinations to one bit, as the other provers' constraint system.
type Chain struct {
	Public [public]frontend.Variable `gnark:",public"`
	Bits   []frontend.Variable
	rows   int
}

// Define implements frontend.Circuit.
func (c *Chain) Define(api frontend.API) error {
	x, y := c.Public[public-2], c.Public[public-1]
	bit := 0
	for i := 0; i < c.rows; i++ {
		if i%4 == 3 {
			api.AssertIsBoolean(c.Bits[bit])
			x, y = y, c.Bits[bit]
			bit++
			continue
		}
		x, y = y, api.Mul(api.Add(x, y), api.Add(api.Mul(y, 3), 1))
	}
	return nil
}

func assign(rows int) *Chain {
	c := &Chain{Bits: make([]frontend.Variable, rows/4), rows: rows}
	for i := range c.Public {
		c.Public[i], _ = rand.Int(rand.Reader, ecc.BN254.ScalarField())
	}
	for i := range c.Bits {
		c.Bits[i], _ = rand.Int(rand.Reader, big.NewInt(2))
	}
	return c
}

func used() (float64, int64) {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime), u.Maxrss * 1024
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	logger.Disable()
	rows, err := strconv.Atoi(os.Args[1])
	must(err)
	empty := &Chain{Bits: make([]frontend.Variable, rows/4), rows: rows}
	system, err := frontend.Compile(ecc.BN254.ScalarField(), r1cs.NewBuilder, empty)
	must(err)
	key, verifying, err := groth16.Setup(system)
	must(err)
	full, err := frontend.NewWitness(assign(rows), ecc.BN254.ScalarField())
	must(err)
	inputs, err := full.Public()
	must(err)
	var wall, cpu float64
	for range 2 {
		start := time.Now()
		before, _ := used()
		proof, err := groth16.Prove(system, key, full)
		must(err)
		wall = time.Since(start).Seconds()
		after, _ := used()
		cpu = after - before
		must(groth16.Verify(proof, verifying, inputs))
	}
	_, peak := used()
	fmt.Printf("{\"seconds\": %.3f, \"cpu_seconds\": %.2f, \"peak_bytes\": %d, \"constraints\": %d}\n",
		wall, cpu, peak, system.GetNbConstraints())
}
