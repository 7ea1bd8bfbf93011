pragma circom 2.2.0;

include "../lib/embed.circom";

component main {public [ctx, table, hq, cq]} = Embed(64, 768, 5, 32000, 16593);
