#include "textflag.h"

// One row of 4-bit weights after the other, straight from the published bytes. Prefetch runs 4 KiB ahead into the second cache: on the
// machine that these were measured on it is worth 1.3 to 1.5 times, because without it the out-of-order window, not the line fill
// buffers, bounds how many lines are under way. One KiB ahead gave half of that, 4 to 16 KiB the same.
#define AHEAD 4096

// Dword lane i of IDX(j) picks, from 16 group scales, that of the group whose products stand in lane i of pair j.
DATA pairIndex<>+0(SB)/8, $0x0000000000000000
DATA pairIndex<>+8(SB)/8, $0x0000000000000000
DATA pairIndex<>+16(SB)/8, $0x0000000000000000
DATA pairIndex<>+24(SB)/8, $0x0000000000000000
DATA pairIndex<>+32(SB)/8, $0x0000000100000001
DATA pairIndex<>+40(SB)/8, $0x0000000100000001
DATA pairIndex<>+48(SB)/8, $0x0000000100000001
DATA pairIndex<>+56(SB)/8, $0x0000000100000001
GLOBL pairIndex<>(SB), RODATA|NOPTR, $64

DATA words15<>+0(SB)/4, $0x000f000f
GLOBL words15<>(SB), RODATA|NOPTR, $4
DATA bytes15<>+0(SB)/4, $0x0f0f0f0f
GLOBL bytes15<>(SB), RODATA|NOPTR, $4
DATA dword2<>+0(SB)/4, $2
GLOBL dword2<>(SB), RODATA|NOPTR, $4

// Arguments in registers: DI y, SI codes, R9 scales, R10 biases, R8 activations, R11 steps, R12 sums, R13 rows, CX pairs of groups.
#define LOAD_ARGS \
	MOVQ y+0(FP), DI \
	MOVQ codes+8(FP), SI \
	MOVQ scales+16(FP), R9 \
	MOVQ biases+24(FP), R10 \
	MOVQ x+32(FP), R8 \
	MOVQ steps+40(FP), R11 \
	MOVQ sums+48(FP), R12 \
	MOVQ rows+56(FP), R13 \
	MOVQ pairs+64(FP), CX

#define LOAD_CONSTANTS(NIBBLES) \
	VPBROADCASTD NIBBLES<>(SB), Z31 \
	VPBROADCASTD dword2<>(SB), Z30 \
	VMOVDQU64 pairIndex<>(SB), Z20 \
	VPADDD Z30, Z20, Z21 \
	VPADDD Z30, Z21, Z22 \
	VPADDD Z30, Z22, Z23 \
	VPADDD Z30, Z23, Z24 \
	VPADDD Z30, Z24, Z25 \
	VPADDD Z30, Z25, Z26 \
	VPADDD Z30, Z26, Z27

#define START_ROW \
	VPXORD Z16, Z16, Z16 \
	VPXORD Z17, Z17, Z17 \
	VPXORD Z18, Z18, Z18 \
	XORQ AX, AX \
	MOVQ R8, DX \
	MOVQ CX, BX

// Z28 = scale*step of the 16 groups from AX on; Z18 += bias*sum. K1 says which of them exist.
#define SCALES \
	VPMOVZXWD.Z (R9), K1, Z28 \
	VPSLLD $16, Z28, Z28 \
	VMULPS.Z (R11)(AX*4), Z28, K1, Z28 \
	VPMOVZXWD.Z (R10), K1, Z29 \
	VPSLLD $16, Z29, Z29 \
	VMOVUPS.Z (R12)(AX*4), K1, Z15 \
	VFMADD231PS Z15, Z29, Z18

#define PREFETCH4(at) \
	PREFETCHT1 (AHEAD+at)(SI) \
	PREFETCHT1 (AHEAD+at+64)(SI) \
	PREFETCHT1 (AHEAD+at+128)(SI) \
	PREFETCHT1 (AHEAD+at+192)(SI)

// The row's sum to y, and on to the next row.
#define END_ROW \
	VADDPS Z17, Z16, Z16 \
	VADDPS Z18, Z16, Z0 \
	VEXTRACTF64X4 $1, Z0, Y1 \
	VADDPS Y1, Y0, Y0 \
	VEXTRACTF128 $1, Y0, X1 \
	VADDPS X1, X0, X0 \
	VPERMILPD $1, X0, X1 \
	VADDPS X1, X0, X0 \
	VMOVSHDUP X0, X1 \
	VADDSS X1, X0, X0 \
	VMOVSS X0, (DI) \
	ADDQ $4, DI

// Mask of the 2*BX groups that are left, BX under 8.
#define TAIL_MASK \
	MOVQ CX, R14 \
	MOVQ BX, CX \
	ADDQ CX, CX \
	MOVL $1, DX \
	SHLL CX, DX \
	DECL DX \
	KMOVW DX, K1 \
	MOVQ R14, CX

// Pair j with 16-bit activations: nibble c of word i is weight 4i+c, and its activations lie as [c][32 words].
#define PAIR16(j, IDX, ACC) \
	VMOVDQU64 (64*j)(SI), Z0 \
	VPSRLW $4, Z0, Z1 \
	VPSRLW $8, Z0, Z2 \
	VPSRLW $12, Z0, Z3 \
	VPANDD Z31, Z0, Z0 \
	VPANDD Z31, Z1, Z1 \
	VPANDD Z31, Z2, Z2 \
	VPXORD Z4, Z4, Z4 \
	VPDPWSSD (256*j)(DX), Z0, Z4 \
	VPDPWSSD (256*j+64)(DX), Z1, Z4 \
	VPDPWSSD (256*j+128)(DX), Z2, Z4 \
	VPDPWSSD (256*j+192)(DX), Z3, Z4 \
	VCVTDQ2PS Z4, Z4 \
	VPERMPS Z28, IDX, Z5 \
	VFMADD231PS Z5, Z4, ACC

// Pair j with 8-bit activations, which lie as [even 64 bytes][odd 64 bytes].
#define PAIR8(j, IDX, ACC) \
	VMOVDQU64 (64*j)(SI), Z0 \
	VPSRLW $4, Z0, Z1 \
	VPANDD Z31, Z0, Z0 \
	VPANDD Z31, Z1, Z1 \
	VPXORD Z4, Z4, Z4 \
	VPDPBUSD (128*j)(DX), Z0, Z4 \
	VPDPBUSD (128*j+64)(DX), Z1, Z4 \
	VCVTDQ2PS Z4, Z4 \
	VPERMPS Z28, IDX, Z5 \
	VFMADD231PS Z5, Z4, ACC

// All rows: blocks of 8 pairs, then 4, then single ones. PAIR is PAIR16 or PAIR8; STRIDE the bytes of activations a pair has.
#define ROWS(PAIR, STRIDE) \
row: \
	START_ROW \
	KXNORW K1, K1, K1 \
	CMPQ BX, $8 \
	JLT tail \
block8: \
	SCALES \
	PREFETCH4(0) \
	PAIR(0, Z20, Z16) \
	PAIR(1, Z21, Z17) \
	PAIR(2, Z22, Z16) \
	PAIR(3, Z23, Z17) \
	PREFETCH4(256) \
	PAIR(4, Z24, Z16) \
	PAIR(5, Z25, Z17) \
	PAIR(6, Z26, Z16) \
	PAIR(7, Z27, Z17) \
	ADDQ $512, SI \
	ADDQ $(8*STRIDE), DX \
	ADDQ $32, R9 \
	ADDQ $32, R10 \
	ADDQ $16, AX \
	SUBQ $8, BX \
	CMPQ BX, $8 \
	JGE block8 \
tail: \
	TESTQ BX, BX \
	JZ done \
	MOVQ DX, R15 \
	TAIL_MASK \
	MOVQ R15, DX \
	SCALES \
	LEAQ (BX)(BX*1), R15 \
	VMOVDQA64 Z20, Z6 \
	CMPQ BX, $4 \
	JLT single \
	PREFETCH4(0) \
	PAIR(0, Z20, Z16) \
	PAIR(1, Z21, Z17) \
	PAIR(2, Z22, Z16) \
	PAIR(3, Z23, Z17) \
	ADDQ $256, SI \
	ADDQ $(4*STRIDE), DX \
	VMOVDQA64 Z24, Z6 \
	SUBQ $4, BX \
	JZ tailed \
single: \
	PREFETCHT1 AHEAD(SI) \
	PAIR(0, Z6, Z16) \
	VPADDD Z30, Z6, Z6 \
	ADDQ $64, SI \
	ADDQ $STRIDE, DX \
	DECQ BX \
	JNZ single \
tailed: \
	LEAQ (R9)(R15*2), R9 \
	LEAQ (R10)(R15*2), R10 \
done: \
	END_ROW \
	DECQ R13 \
	JNZ row \
	VZEROUPPER \
	RET

// func gemv16AVX512(y *float32, codes, scales, biases *byte, x *int16, steps, sums *float32, rows, pairs int)
TEXT ·gemv16AVX512(SB), NOSPLIT, $0-72
	LOAD_ARGS
	LOAD_CONSTANTS(words15)
	ROWS(PAIR16, 256)

// func gemv8AVX512(y *float32, codes, scales, biases *byte, x *int8, steps, sums *float32, rows, pairs int)
TEXT ·gemv8AVX512(SB), NOSPLIT, $0-72
	LOAD_ARGS
	LOAD_CONSTANTS(bytes15)
	ROWS(PAIR8, 128)

// Pair j of 8-bit weights: 128 bytes against 128 words in their own order. Both groups' products stand in registers of their own.
#define CODES8(j, IDX, ACC) \
	VPMOVZXBW (128*j)(SI), Z0 \
	VPMOVZXBW (128*j+32)(SI), Z1 \
	VPMOVZXBW (128*j+64)(SI), Z2 \
	VPMOVZXBW (128*j+96)(SI), Z3 \
	VPXORD Z4, Z4, Z4 \
	VPXORD Z5, Z5, Z5 \
	VPDPWSSD (256*j)(DX), Z0, Z4 \
	VPDPWSSD (256*j+64)(DX), Z1, Z4 \
	VPDPWSSD (256*j+128)(DX), Z2, Z5 \
	VPDPWSSD (256*j+192)(DX), Z3, Z5 \
	VEXTRACTI64X4 $1, Z4, Y7 \
	VPADDD Y7, Y4, Y4 \
	VEXTRACTI64X4 $1, Z5, Y7 \
	VPADDD Y7, Y5, Y5 \
	VINSERTI64X4 $1, Y5, Z4, Z4 \
	VCVTDQ2PS Z4, Z4 \
	VPERMPS Z28, IDX, Z5 \
	VFMADD231PS Z5, Z4, ACC

// func gemvCodes8AVX512(y *float32, codes, scales, biases *byte, x *int16, steps, sums *float32, rows, pairs int)
//
// The products of one group are at most 64*255*32767 < 2^29.1, so 32-bit lanes hold them.
TEXT ·gemvCodes8AVX512(SB), NOSPLIT, $0-72
	LOAD_ARGS
	LOAD_CONSTANTS(words15)
row:
	START_ROW
block:
	KXNORW K1, K1, K1
	CMPQ BX, $8
	JGE whole
	MOVQ DX, R15
	TAIL_MASK
	MOVQ R15, DX
whole:
	SCALES
	VMOVDQA64 Z20, Z6
	MOVQ $8, R14
	CMPQ BX, R14
	CMOVQLT BX, R14
	SUBQ R14, BX
	LEAQ (AX)(R14*2), AX
	LEAQ (R14)(R14*1), R15
	LEAQ (R9)(R15*2), R9
	LEAQ (R10)(R15*2), R10
pair:
	PREFETCHT1 AHEAD(SI)
	PREFETCHT1 (AHEAD+64)(SI)
	CODES8(0, Z6, Z16)
	VPADDD Z30, Z6, Z6
	ADDQ $128, SI
	ADDQ $256, DX
	DECQ R14
	JNZ pair
	TESTQ BX, BX
	JNZ block
	END_ROW
	DECQ R13
	JNZ row
	VZEROUPPER
	RET
