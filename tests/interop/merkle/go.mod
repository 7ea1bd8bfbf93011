module github.com/transparency-dev/merkle

go 1.25.0

require tagged.test/merkle v0.0.2
