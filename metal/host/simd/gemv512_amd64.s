#include "textflag.h"

// One row of 4-bit weights after the other, straight from the published bytes, times one to four vectors: the nibbles are unpacked once, and
// each vector's sums are added in the same order however many there are. Prefetch runs 4 KiB ahead into the second cache: on the
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

#define PREFETCH4(at) \
	PREFETCHT1 (AHEAD+at)(SI) \
	PREFETCHT1 (AHEAD+at+64)(SI) \
	PREFETCHT1 (AHEAD+at+128)(SI) \
	PREFETCHT1 (AHEAD+at+192)(SI)

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

// Vectors lie as blocks of up to eight pairs of groups: 16 steps, 16 sums of groups (step*sum), then the pairs' activations.
#define BLOCK_HEAD 128

// Registers: SI codes, R9 scales, R10 biases, R13 rows, CX pairs of groups, DI bytes of results so far; vector v walks in R8, R11, R12, R14. Its
// scale*step stand in Z6, Z7, Z28, Z29, its sums in Z8+v and Z12+v, those of biases in Z16+v.
#define LOAD_FEW \
	MOVQ codes+8(FP), SI \
	MOVQ scales+16(FP), R9 \
	MOVQ biases+24(FP), R10 \
	MOVQ rows+32(FP), R13 \
	MOVQ pairs+40(FP), CX \
	XORQ DI, DI

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

#define START(v, X, A0, A1, B) \
	MOVQ (32+8*v)(AX), X \
	VPXORD A0, A0, A0 \
	VPXORD A1, A1, A1 \
	VPXORD B, B, B

// Z0, Z1 = scale, bias of the groups of a block. K1 says which of the 16 exist.
#define BLOCK_SCALES \
	VPMOVZXWD.Z (R9), K1, Z0 \
	VPSLLD $16, Z0, Z0 \
	VPMOVZXWD.Z (R10), K1, Z1 \
	VPSLLD $16, Z1, Z1

// S = scale*step, B += bias*sum of a vector.
#define SCALES_OF(X, S, B) \
	VMULPS.Z (X), Z0, K1, S \
	VMOVUPS.Z 64(X), K1, Z5 \
	VFMADD231PS Z5, Z1, B

// Pair j for 16-bit activations: nibble c of word i is weight 4i+c, and its activations lie as [c][32 words].
#define NIBBLES16(j) \
	VMOVDQU64 (64*j)(SI), Z0 \
	VPSRLW $4, Z0, Z1 \
	VPSRLW $8, Z0, Z2 \
	VPSRLW $12, Z0, Z3 \
	VPANDD Z31, Z0, Z0 \
	VPANDD Z31, Z1, Z1 \
	VPANDD Z31, Z2, Z2

#define DOT16(j, X, S, IDX, ACC) \
	VPXORD Z4, Z4, Z4 \
	VPDPWSSD (BLOCK_HEAD+256*j)(X), Z0, Z4 \
	VPDPWSSD (BLOCK_HEAD+256*j+64)(X), Z1, Z4 \
	VPDPWSSD (BLOCK_HEAD+256*j+128)(X), Z2, Z4 \
	VPDPWSSD (BLOCK_HEAD+256*j+192)(X), Z3, Z4 \
	VCVTDQ2PS Z4, Z4 \
	VPERMPS S, IDX, Z5 \
	VFMADD231PS Z5, Z4, ACC

// Pair j for 8-bit activations, which lie as [even 64 bytes][odd 64 bytes].
#define NIBBLES8(j) \
	VMOVDQU64 (64*j)(SI), Z0 \
	VPSRLW $4, Z0, Z1 \
	VPANDD Z31, Z0, Z0 \
	VPANDD Z31, Z1, Z1

#define DOT8(j, X, S, IDX, ACC) \
	VPXORD Z4, Z4, Z4 \
	VPDPBUSD (BLOCK_HEAD+128*j)(X), Z0, Z4 \
	VPDPBUSD (BLOCK_HEAD+128*j+64)(X), Z1, Z4 \
	VCVTDQ2PS Z4, Z4 \
	VPERMPS S, IDX, Z5 \
	VFMADD231PS Z5, Z4, ACC

// The sum of a vector to its results.
#define END(v, A0, A1, B) \
	VADDPS A1, A0, A0 \
	VADDPS B, A0, Z0 \
	VEXTRACTF64X4 $1, Z0, Y1 \
	VADDPS Y1, Y0, Y0 \
	VEXTRACTF128 $1, Y0, X1 \
	VADDPS X1, X0, X0 \
	VPERMILPD $1, X0, X1 \
	VADDPS X1, X0, X0 \
	VMOVSHDUP X0, X1 \
	VADDSS X1, X0, X0 \
	MOVQ (8*v)(AX), DX \
	VMOVSS X0, (DX)(DI*1)

// Each for so many vectors.
#define START1 START(0, R8, Z8, Z12, Z16)
#define START2 START(0, R8, Z8, Z12, Z16); START(1, R11, Z9, Z13, Z17)
#define START3 START(0, R8, Z8, Z12, Z16); START(1, R11, Z9, Z13, Z17); START(2, R12, Z10, Z14, Z18)
#define START4 START(0, R8, Z8, Z12, Z16); START(1, R11, Z9, Z13, Z17); START(2, R12, Z10, Z14, Z18); START(3, R14, Z11, Z15, Z19)
#define SCALES1 SCALES_OF(R8, Z6, Z16)
#define SCALES2 SCALES_OF(R8, Z6, Z16); SCALES_OF(R11, Z7, Z17)
#define SCALES3 SCALES_OF(R8, Z6, Z16); SCALES_OF(R11, Z7, Z17); SCALES_OF(R12, Z28, Z18)
#define SCALES4 SCALES_OF(R8, Z6, Z16); SCALES_OF(R11, Z7, Z17); SCALES_OF(R12, Z28, Z18); SCALES_OF(R14, Z29, Z19)
#define EVEN1(DOT, j, IDX) DOT(j, R8, Z6, IDX, Z8)
#define EVEN2(DOT, j, IDX) DOT(j, R8, Z6, IDX, Z8); DOT(j, R11, Z7, IDX, Z9)
#define EVEN3(DOT, j, IDX) DOT(j, R8, Z6, IDX, Z8); DOT(j, R11, Z7, IDX, Z9); DOT(j, R12, Z28, IDX, Z10)
#define EVEN4(DOT, j, IDX) DOT(j, R8, Z6, IDX, Z8); DOT(j, R11, Z7, IDX, Z9); DOT(j, R12, Z28, IDX, Z10); DOT(j, R14, Z29, IDX, Z11)
#define ODD1(DOT, j, IDX) DOT(j, R8, Z6, IDX, Z12)
#define ODD2(DOT, j, IDX) DOT(j, R8, Z6, IDX, Z12); DOT(j, R11, Z7, IDX, Z13)
#define ODD3(DOT, j, IDX) DOT(j, R8, Z6, IDX, Z12); DOT(j, R11, Z7, IDX, Z13); DOT(j, R12, Z28, IDX, Z14)
#define ODD4(DOT, j, IDX) DOT(j, R8, Z6, IDX, Z12); DOT(j, R11, Z7, IDX, Z13); DOT(j, R12, Z28, IDX, Z14); DOT(j, R14, Z29, IDX, Z15)
#define WALK1(bytes) ADDQ $(bytes), R8
#define WALK2(bytes) ADDQ $(bytes), R8; ADDQ $(bytes), R11
#define WALK3(bytes) ADDQ $(bytes), R8; ADDQ $(bytes), R11; ADDQ $(bytes), R12
#define WALK4(bytes) ADDQ $(bytes), R8; ADDQ $(bytes), R11; ADDQ $(bytes), R12; ADDQ $(bytes), R14
#define END1 END(0, Z8, Z12, Z16)
#define END2 END(0, Z8, Z12, Z16); END(1, Z9, Z13, Z17)
#define END3 END(0, Z8, Z12, Z16); END(1, Z9, Z13, Z17); END(2, Z10, Z14, Z18)
#define END4 END(0, Z8, Z12, Z16); END(1, Z9, Z13, Z17); END(2, Z10, Z14, Z18); END(3, Z11, Z15, Z19)

// All rows: blocks of 8 pairs, then 4, then single ones. NIBBLES and DOT are those of a precision, STRIDE the bytes of activations a pair has; the
// others are those of a number of vectors.
#define ROWS(NIBBLES, DOT, STRIDE, START_, SCALES_, EVEN_, ODD_, WALK_, END_) \
row: \
	MOVQ few+0(FP), AX \
	START_ \
	MOVQ CX, BX \
	KXNORW K1, K1, K1 \
	CMPQ BX, $8 \
	JLT tail \
block8: \
	BLOCK_SCALES \
	SCALES_ \
	PREFETCH4(0) \
	NIBBLES(0) \
	EVEN_(DOT, 0, Z20) \
	NIBBLES(1) \
	ODD_(DOT, 1, Z21) \
	NIBBLES(2) \
	EVEN_(DOT, 2, Z22) \
	NIBBLES(3) \
	ODD_(DOT, 3, Z23) \
	PREFETCH4(256) \
	NIBBLES(4) \
	EVEN_(DOT, 4, Z24) \
	NIBBLES(5) \
	ODD_(DOT, 5, Z25) \
	NIBBLES(6) \
	EVEN_(DOT, 6, Z26) \
	NIBBLES(7) \
	ODD_(DOT, 7, Z27) \
	ADDQ $512, SI \
	WALK_(BLOCK_HEAD+8*STRIDE) \
	ADDQ $32, R9 \
	ADDQ $32, R10 \
	SUBQ $8, BX \
	CMPQ BX, $8 \
	JGE block8 \
tail: \
	TESTQ BX, BX \
	JZ done \
	MOVQ CX, R15 \
	LEAQ (BX)(BX*1), CX \
	MOVL $1, DX \
	SHLL CX, DX \
	DECL DX \
	KMOVW DX, K1 \
	MOVQ R15, CX \
	LEAQ (BX)(BX*1), R15 \
	BLOCK_SCALES \
	SCALES_ \
	VMOVDQA64 Z20, Z27 \
	CMPQ BX, $4 \
	JLT single \
	PREFETCH4(0) \
	NIBBLES(0) \
	EVEN_(DOT, 0, Z20) \
	NIBBLES(1) \
	ODD_(DOT, 1, Z21) \
	NIBBLES(2) \
	EVEN_(DOT, 2, Z22) \
	NIBBLES(3) \
	ODD_(DOT, 3, Z23) \
	ADDQ $256, SI \
	WALK_(4*STRIDE) \
	VMOVDQA64 Z24, Z27 \
	SUBQ $4, BX \
	JZ tailed \
single: \
	PREFETCHT1 AHEAD(SI) \
	NIBBLES(0) \
	EVEN_(DOT, 0, Z27) \
	VPADDD Z30, Z27, Z27 \
	ADDQ $64, SI \
	WALK_(STRIDE) \
	DECQ BX \
	JNZ single \
tailed: \
	LEAQ (R9)(R15*2), R9 \
	LEAQ (R10)(R15*2), R10 \
	VPADDD Z30, Z26, Z27 \
done: \
	END_ \
	ADDQ $4, DI \
	DECQ R13 \
	JNZ row \
	VZEROUPPER \
	RET

// func gemv16x1AVX512(few *few, codes, scales, biases *byte, rows, pairs int)
TEXT ·gemv16x1AVX512(SB), NOSPLIT, $0-48
	LOAD_FEW
	LOAD_CONSTANTS(words15)
	ROWS(NIBBLES16, DOT16, 256, START1, SCALES1, EVEN1, ODD1, WALK1, END1)

// func gemv16x2AVX512(few *few, codes, scales, biases *byte, rows, pairs int)
TEXT ·gemv16x2AVX512(SB), NOSPLIT, $0-48
	LOAD_FEW
	LOAD_CONSTANTS(words15)
	ROWS(NIBBLES16, DOT16, 256, START2, SCALES2, EVEN2, ODD2, WALK2, END2)

// func gemv16x3AVX512(few *few, codes, scales, biases *byte, rows, pairs int)
TEXT ·gemv16x3AVX512(SB), NOSPLIT, $0-48
	LOAD_FEW
	LOAD_CONSTANTS(words15)
	ROWS(NIBBLES16, DOT16, 256, START3, SCALES3, EVEN3, ODD3, WALK3, END3)

// func gemv16x4AVX512(few *few, codes, scales, biases *byte, rows, pairs int)
TEXT ·gemv16x4AVX512(SB), NOSPLIT, $0-48
	LOAD_FEW
	LOAD_CONSTANTS(words15)
	ROWS(NIBBLES16, DOT16, 256, START4, SCALES4, EVEN4, ODD4, WALK4, END4)

// func gemv8x1AVX512(few *few, codes, scales, biases *byte, rows, pairs int)
TEXT ·gemv8x1AVX512(SB), NOSPLIT, $0-48
	LOAD_FEW
	LOAD_CONSTANTS(bytes15)
	ROWS(NIBBLES8, DOT8, 128, START1, SCALES1, EVEN1, ODD1, WALK1, END1)

// func gemv8x2AVX512(few *few, codes, scales, biases *byte, rows, pairs int)
TEXT ·gemv8x2AVX512(SB), NOSPLIT, $0-48
	LOAD_FEW
	LOAD_CONSTANTS(bytes15)
	ROWS(NIBBLES8, DOT8, 128, START2, SCALES2, EVEN2, ODD2, WALK2, END2)

// func gemv8x3AVX512(few *few, codes, scales, biases *byte, rows, pairs int)
TEXT ·gemv8x3AVX512(SB), NOSPLIT, $0-48
	LOAD_FEW
	LOAD_CONSTANTS(bytes15)
	ROWS(NIBBLES8, DOT8, 128, START3, SCALES3, EVEN3, ODD3, WALK3, END3)

// func gemv8x4AVX512(few *few, codes, scales, biases *byte, rows, pairs int)
TEXT ·gemv8x4AVX512(SB), NOSPLIT, $0-48
	LOAD_FEW
	LOAD_CONSTANTS(bytes15)
	ROWS(NIBBLES8, DOT8, 128, START4, SCALES4, EVEN4, ODD4, WALK4, END4)

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
