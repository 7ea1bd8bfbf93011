pragma circom 2.2.0;

include "../lib/coalition.circom";

component main {public [statement]} = Coalition(16, 768, 4, 5, 13);
