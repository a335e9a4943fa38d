#include "textflag.h"

// Products of 32 rows of 4-bit weights with packed tokens. A group of 64 weights of all rows is unpacked once into the first cache, one
// vector of 16 rows a step of k, and then meets every token: two vectors of rows against eight tokens at a time, so that ten loads
// feed sixteen products. Sums of a group stay integers; scale and step are applied once a group.

DATA nibbleWords<>+0(SB)/4, $0x000f000f
GLOBL nibbleWords<>(SB), RODATA|NOPTR, $4
DATA nibbleBytes<>+0(SB)/4, $0x0f0f0f0f
GLOBL nibbleBytes<>(SB), RODATA|NOPTR, $4

// Four rows of 32 bytes at SI, SI+R8, SI+2*R8, SI+R9 in the low halves, the four rows after them in the high ones: Z(A)..Z(D) then hold,
// in 128-bit lanes, dwords A: 0 and 4, B: 1 and 5, C: 2 and 6, D: 3 and 7 of rows 0-3 (lanes 0, 1) and 4-7 (lanes 2, 3). R10 = SI + 4*R8.
#define QUAD(A, B, C, D) \
	VBROADCASTI64X4 (SI), Z16 \
	VBROADCASTI64X4 (SI)(R8*1), Z17 \
	VBROADCASTI64X4 (SI)(R8*2), Z18 \
	VBROADCASTI64X4 (SI)(R9*1), Z19 \
	VINSERTI64X4 $1, (R10), Z16, Z16 \
	VINSERTI64X4 $1, (R10)(R8*1), Z17, Z17 \
	VINSERTI64X4 $1, (R10)(R8*2), Z18, Z18 \
	VINSERTI64X4 $1, (R10)(R9*1), Z19, Z19 \
	VPUNPCKLDQ Z17, Z16, Z20 \
	VPUNPCKHDQ Z17, Z16, Z21 \
	VPUNPCKLDQ Z19, Z18, Z22 \
	VPUNPCKHDQ Z19, Z18, Z23 \
	VPUNPCKLQDQ Z22, Z20, A \
	VPUNPCKHQDQ Z22, Z20, B \
	VPUNPCKLQDQ Z23, Z21, C \
	VPUNPCKHQDQ Z23, Z21, D

// Z8..Z15 = dwords 0..7 of 16 rows. SI moves on by 16 rows.
#define TRANSPOSE16 \
	LEAQ (SI)(R8*4), R10 \
	QUAD(Z0, Z1, Z2, Z3) \
	LEAQ (R10)(R8*4), SI \
	LEAQ (SI)(R8*4), R10 \
	QUAD(Z4, Z5, Z6, Z7) \
	LEAQ (R10)(R8*4), SI \
	VSHUFI32X4 $0x88, Z4, Z0, Z8 \
	VSHUFI32X4 $0x88, Z5, Z1, Z9 \
	VSHUFI32X4 $0x88, Z6, Z2, Z10 \
	VSHUFI32X4 $0x88, Z7, Z3, Z11 \
	VSHUFI32X4 $0xdd, Z4, Z0, Z12 \
	VSHUFI32X4 $0xdd, Z5, Z1, Z13 \
	VSHUFI32X4 $0xdd, Z6, Z2, Z14 \
	VSHUFI32X4 $0xdd, Z7, Z3, Z15

// Dword j of 16 rows as four steps of k, two words each, 128 bytes apart at DX (the other 64 are the second sixteen rows').
#define UNPACK16(Z, at) \
	VPANDD Z31, Z, Z0 \
	VMOVDQU64 Z0, (at)(DX) \
	VPSRLW $4, Z, Z1 \
	VPANDD Z31, Z1, Z1 \
	VMOVDQU64 Z1, (at+128)(DX) \
	VPSRLW $8, Z, Z2 \
	VPANDD Z31, Z2, Z2 \
	VMOVDQU64 Z2, (at+256)(DX) \
	VPSRLW $12, Z, Z3 \
	VMOVDQU64 Z3, (at+384)(DX)

// Dword j of 16 rows as two steps of k, four bytes each.
#define UNPACK8(Z, at) \
	VPANDD Z31, Z, Z0 \
	VMOVDQU64 Z0, (at)(DX) \
	VPSRLW $4, Z, Z1 \
	VPANDD Z31, Z1, Z1 \
	VMOVDQU64 Z1, (at+128)(DX)

// Eight tokens' packed activations stand TOKEN bytes apart at SI; DX walks the unpacked weights, BX counts the steps.
#define CLEAR16 \
	VPXORD Z0, Z0, Z0 \
	VPXORD Z1, Z1, Z1 \
	VPXORD Z2, Z2, Z2 \
	VPXORD Z3, Z3, Z3 \
	VPXORD Z4, Z4, Z4 \
	VPXORD Z5, Z5, Z5 \
	VPXORD Z6, Z6, Z6 \
	VPXORD Z7, Z7, Z7 \
	VPXORD Z8, Z8, Z8 \
	VPXORD Z9, Z9, Z9 \
	VPXORD Z10, Z10, Z10 \
	VPXORD Z11, Z11, Z11 \
	VPXORD Z12, Z12, Z12 \
	VPXORD Z13, Z13, Z13 \
	VPXORD Z14, Z14, Z14 \
	VPXORD Z15, Z15, Z15

#define STEP(DOT, TOKEN, s) \
	VMOVDQU64 (128*s)(DX), Z16 \
	VMOVDQU64 (128*s+64)(DX), Z17 \
	VPBROADCASTD (4*s)(SI), Z18 \
	VPBROADCASTD (TOKEN+4*s)(SI), Z19 \
	VPBROADCASTD (2*TOKEN+4*s)(SI), Z20 \
	VPBROADCASTD (3*TOKEN+4*s)(SI), Z21 \
	VPBROADCASTD (4*TOKEN+4*s)(SI), Z22 \
	VPBROADCASTD (5*TOKEN+4*s)(SI), Z23 \
	VPBROADCASTD (6*TOKEN+4*s)(SI), Z24 \
	VPBROADCASTD (7*TOKEN+4*s)(SI), Z25 \
	DOT(Z18, Z16, Z0) \
	DOT(Z18, Z17, Z8) \
	DOT(Z19, Z16, Z1) \
	DOT(Z19, Z17, Z9) \
	DOT(Z20, Z16, Z2) \
	DOT(Z20, Z17, Z10) \
	DOT(Z21, Z16, Z3) \
	DOT(Z21, Z17, Z11) \
	DOT(Z22, Z16, Z4) \
	DOT(Z22, Z17, Z12) \
	DOT(Z23, Z16, Z5) \
	DOT(Z23, Z17, Z13) \
	DOT(Z24, Z16, Z6) \
	DOT(Z24, Z17, Z14) \
	DOT(Z25, Z16, Z7) \
	DOT(Z25, Z17, Z15)

#define DOT16(X, W, ACC) VPDPWSSD X, W, ACC
#define DOT8(X, W, ACC) VPDPBUSD X, W, ACC

// y[t] += scale*step[t]*dot + bias*sum[t] for token t at DI; Z26, Z27 are the scales of the 32 rows, Z28, Z29 their biases.
#define FOLD(t, LO, HI) \
	VCVTDQ2PS LO, LO \
	VCVTDQ2PS HI, HI \
	VMULPS Z26, LO, LO \
	VMULPS Z27, HI, HI \
	VMOVUPS (128*t)(DI), Z16 \
	VMOVUPS (128*t+64)(DI), Z17 \
	VBROADCASTSS (4*t)(R11), Z18 \
	VBROADCASTSS (4*t)(R12), Z19 \
	VFMADD231PS Z18, LO, Z16 \
	VFMADD231PS Z18, HI, Z17 \
	VFMADD231PS Z19, Z28, Z16 \
	VFMADD231PS Z19, Z29, Z17 \
	VMOVUPS Z16, (128*t)(DI) \
	VMOVUPS Z17, (128*t+64)(DI)

#define GEMM(DOT, TOKEN, FOURS) \
	MOVQ y+0(FP), DI \
	MOVQ weights+8(FP), R8 \
	MOVQ scales+16(FP), R9 \
	MOVQ biases+24(FP), R10 \
	MOVQ x+32(FP), SI \
	MOVQ steps+40(FP), R11 \
	MOVQ sums+48(FP), R12 \
	MOVQ tokens+56(FP), R13 \
	VMOVUPS (R9), Z26 \
	VMOVUPS 64(R9), Z27 \
	VMOVUPS (R10), Z28 \
	VMOVUPS 64(R10), Z29 \
token: \
	CLEAR16 \
	MOVQ R8, DX \
	MOVQ $FOURS, BX \
step: \
	STEP(DOT, TOKEN, 0) \
	STEP(DOT, TOKEN, 1) \
	STEP(DOT, TOKEN, 2) \
	STEP(DOT, TOKEN, 3) \
	ADDQ $512, DX \
	ADDQ $16, SI \
	DECQ BX \
	JNZ step \
	FOLD(0, Z0, Z8) \
	FOLD(1, Z1, Z9) \
	FOLD(2, Z2, Z10) \
	FOLD(3, Z3, Z11) \
	FOLD(4, Z4, Z12) \
	FOLD(5, Z5, Z13) \
	FOLD(6, Z6, Z14) \
	FOLD(7, Z7, Z15) \
	ADDQ $(7*TOKEN), SI \
	ADDQ $1024, DI \
	ADDQ $32, R11 \
	ADDQ $32, R12 \
	SUBQ $8, R13 \
	JG token \
	VZEROUPPER \
	RET

// func unpack16AVX512(dst *int16, codes *byte, stride int)
//
// dst is [32 steps of k][32 rows][2 words], codes the group's first byte in the first of 32 rows that lie stride bytes apart.
TEXT ·unpack16AVX512(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DX
	MOVQ codes+8(FP), SI
	MOVQ stride+16(FP), R8
	LEAQ (R8)(R8*2), R9
	VPBROADCASTD nibbleWords<>(SB), Z31
	TRANSPOSE16
	UNPACK16(Z8, 0)
	UNPACK16(Z9, 512)
	UNPACK16(Z10, 1024)
	UNPACK16(Z11, 1536)
	UNPACK16(Z12, 2048)
	UNPACK16(Z13, 2560)
	UNPACK16(Z14, 3072)
	UNPACK16(Z15, 3584)
	TRANSPOSE16
	UNPACK16(Z8, 64)
	UNPACK16(Z9, 576)
	UNPACK16(Z10, 1088)
	UNPACK16(Z11, 1600)
	UNPACK16(Z12, 2112)
	UNPACK16(Z13, 2624)
	UNPACK16(Z14, 3136)
	UNPACK16(Z15, 3648)
	VZEROUPPER
	RET

// func unpack8AVX512(dst *int8, codes *byte, stride int)
//
// dst is [16 steps of k][32 rows][4 bytes].
TEXT ·unpack8AVX512(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DX
	MOVQ codes+8(FP), SI
	MOVQ stride+16(FP), R8
	LEAQ (R8)(R8*2), R9
	VPBROADCASTD nibbleBytes<>(SB), Z31
	TRANSPOSE16
	UNPACK8(Z8, 0)
	UNPACK8(Z9, 256)
	UNPACK8(Z10, 512)
	UNPACK8(Z11, 768)
	UNPACK8(Z12, 1024)
	UNPACK8(Z13, 1280)
	UNPACK8(Z14, 1536)
	UNPACK8(Z15, 1792)
	TRANSPOSE16
	UNPACK8(Z8, 64)
	UNPACK8(Z9, 320)
	UNPACK8(Z10, 576)
	UNPACK8(Z11, 832)
	UNPACK8(Z12, 1088)
	UNPACK8(Z13, 1344)
	UNPACK8(Z14, 1600)
	UNPACK8(Z15, 1856)
	VZEROUPPER
	RET

// func gemm16AVX512(y *float32, weights *int16, scales, biases *float32, x *int16, steps, sums *float32, tokens int)
TEXT ·gemm16AVX512(SB), NOSPLIT, $0-64
	GEMM(DOT16, 128, 8)

// func gemm8AVX512(y *float32, weights *int8, scales, biases *float32, x *int8, steps, sums *float32, tokens int)
TEXT ·gemm8AVX512(SB), NOSPLIT, $0-64
	GEMM(DOT8, 64, 4)

// func scales32AVX512(dst *float32, src *byte, stride, pairs int)
//
// dst [2*pairs][32] = the bf16 scales (or biases) of 2*pairs groups of 32 rows that lie stride bytes apart.
TEXT ·scales32AVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), R8
	MOVQ pairs+24(FP), R9
	VPBROADCASTD R8, Z1
	VPMULLD rows<>(SB), Z1, Z0
	MOVQ R8, R10
	SHLQ $4, R10
	ADDQ SI, R10
	MOVL $0xffff0000, AX
	VPBROADCASTD AX, Z31
pair:
	KXNORW K1, K1, K1
	KXNORW K2, K2, K2
	VPGATHERDD (SI)(Z0*1), K1, Z2
	VPGATHERDD (R10)(Z0*1), K2, Z3
	VPSLLD $16, Z2, Z4
	VPSLLD $16, Z3, Z5
	VPANDD Z31, Z2, Z2
	VPANDD Z31, Z3, Z3
	VMOVUPS Z4, (DI)
	VMOVUPS Z5, 64(DI)
	VMOVUPS Z2, 128(DI)
	VMOVUPS Z3, 192(DI)
	ADDQ $4, SI
	ADDQ $4, R10
	ADDQ $256, DI
	DECQ R9
	JNZ pair
	VZEROUPPER
	RET

DATA rows<>+0(SB)/8, $0x0000000100000000
DATA rows<>+8(SB)/8, $0x0000000300000002
DATA rows<>+16(SB)/8, $0x0000000500000004
DATA rows<>+24(SB)/8, $0x0000000700000006
DATA rows<>+32(SB)/8, $0x0000000900000008
DATA rows<>+40(SB)/8, $0x0000000b0000000a
DATA rows<>+48(SB)/8, $0x0000000d0000000c
DATA rows<>+56(SB)/8, $0x0000000f0000000e
GLOBL rows<>(SB), RODATA|NOPTR, $64
