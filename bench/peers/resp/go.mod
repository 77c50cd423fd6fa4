module quorumwire/bench/peers/resp

go 1.19
