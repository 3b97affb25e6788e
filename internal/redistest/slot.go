package redistest

import "strings"

// Slots is how many hash slots a Redis Cluster has.
const Slots = 16384

// Slot returns the hash slot of a key: the CRC16 (XMODEM) of its hash tag, which is
// what stands between the first { and the next }, or of the whole key where nothing does.
func Slot(key string) int {
	if _, tag, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok = strings.Cut(tag, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % Slots
}
