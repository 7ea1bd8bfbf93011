// circuits/witness.cjs without the optimiser: a test ends before code that takes longer to compile has paid for itself.
"use strict";
require("v8").setFlagsFromString("--liftoff-only");
require("../../circuits/witness.cjs");
