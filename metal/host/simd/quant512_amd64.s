#include "textflag.h"

DATA absMask<>+0(SB)/4, $0x7fffffff
GLOBL absMask<>(SB), RODATA|NOPTR, $4

// The maximum of the lanes of Z0 into X0; Z1 is used.
#define MAX16 \
	VEXTRACTF64X4 $1, Z0, Y1 \
	VMAXPS Y1, Y0, Y0 \
	VEXTRACTF128 $1, Y0, X1 \
	VMAXPS X1, X0, X0 \
	VPERMILPD $1, X0, X1 \
	VMAXPS X1, X0, X0 \
	VMOVSHDUP X0, X1 \
	VMAXSS X1, X0, X0

// func quantise16AVX512(q *int16, steps, sums, x *float32, groups int, limit float32)
//
// Group by group: step = max|x|/limit, q = round(x/step) in its own order, sum = step·Σq. A group of zeros has step 0.
TEXT ·quantise16AVX512(SB), NOSPLIT, $0-44
	MOVQ q+0(FP), DI
	MOVQ steps+8(FP), R8
	MOVQ sums+16(FP), R9
	MOVQ x+24(FP), SI
	MOVQ groups+32(FP), CX
	VMOVSS limit+40(FP), X20
	VBROADCASTSS absMask<>(SB), Z21
	VPXORD Z22, Z22, Z22
group:
	VMOVUPS (SI), Z4
	VMOVUPS 64(SI), Z5
	VMOVUPS 128(SI), Z6
	VMOVUPS 192(SI), Z7
	VANDPS Z21, Z4, Z0
	VANDPS Z21, Z5, Z1
	VANDPS Z21, Z6, Z2
	VANDPS Z21, Z7, Z3
	VMAXPS Z1, Z0, Z0
	VMAXPS Z3, Z2, Z2
	VMAXPS Z2, Z0, Z0
	MAX16
	VDIVSS X20, X0, X2 // step
	VDIVSS X0, X20, X3 // 1/step
	VMOVSS X2, (R8)
	VUCOMISS X0, X22
	JNE some
	VMOVAPS X22, X3
some:
	VBROADCASTSS X3, Z3
	VMULPS Z3, Z4, Z4
	VMULPS Z3, Z5, Z5
	VMULPS Z3, Z6, Z6
	VMULPS Z3, Z7, Z7
	VCVTPS2DQ Z4, Z4
	VCVTPS2DQ Z5, Z5
	VCVTPS2DQ Z6, Z6
	VCVTPS2DQ Z7, Z7
	VPMOVSDW Z4, (DI)
	VPMOVSDW Z5, 32(DI)
	VPMOVSDW Z6, 64(DI)
	VPMOVSDW Z7, 96(DI)
	VPADDD Z5, Z4, Z4
	VPADDD Z7, Z6, Z6
	VPADDD Z6, Z4, Z4
	VEXTRACTI64X4 $1, Z4, Y5
	VPADDD Y5, Y4, Y4
	VEXTRACTI128 $1, Y4, X5
	VPADDD X5, X4, X4
	VPSHUFD $0x4e, X4, X5
	VPADDD X5, X4, X4
	VPSHUFD $0xb1, X4, X5
	VPADDD X5, X4, X4
	VCVTDQ2PS X4, X4
	VMULSS X2, X4, X4
	VMOVSS X4, (R9)
	ADDQ $256, SI
	ADDQ $128, DI
	ADDQ $4, R8
	ADDQ $4, R9
	DECQ CX
	JNZ group
	VZEROUPPER
	RET

// Word i of register c of a pair: 4i+c, from two registers of a group each.
DATA byFour<>+0(SB)/8, $0x000c000800040000
DATA byFour<>+8(SB)/8, $0x001c001800140010
DATA byFour<>+16(SB)/8, $0x002c002800240020
DATA byFour<>+24(SB)/8, $0x003c003800340030
DATA byFour<>+32(SB)/8, $0x000c000800040000
DATA byFour<>+40(SB)/8, $0x001c001800140010
DATA byFour<>+48(SB)/8, $0x002c002800240020
DATA byFour<>+56(SB)/8, $0x003c003800340030
GLOBL byFour<>(SB), RODATA|NOPTR, $64
DATA word1<>+0(SB)/2, $1
GLOBL word1<>(SB), RODATA|NOPTR, $2

#define FOURTH(c) \
	VMOVDQA64 Z16, Z4 \
	VPERMI2W Z1, Z0, Z4 \
	VMOVDQA64 Z16, Z5 \
	VPERMI2W Z3, Z2, Z5 \
	VINSERTI64X4 $1, Y5, Z4, Z4 \
	VMOVDQU64 Z4, (64*c)(DI) \
	VPADDW Z17, Z16, Z16

// func order16AVX512(dst, q *int16, pairs int)
//
// From their own order to that of gemv16: a pair of groups as [4][32], entry [c][i] = 4i+c.
TEXT ·order16AVX512(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ q+8(FP), SI
	MOVQ pairs+16(FP), CX
	VPBROADCASTW word1<>(SB), Z17
pair:
	VMOVDQU64 byFour<>(SB), Z16
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	FOURTH(0)
	FOURTH(1)
	FOURTH(2)
	FOURTH(3)
	ADDQ $256, SI
	ADDQ $256, DI
	DECQ CX
	JNZ pair
	VZEROUPPER
	RET

// Words 0 4 1 5 2 6 3 7 of each eight.
DATA zip<>+0(SB)/8, $0x0b0a030209080100
DATA zip<>+8(SB)/8, $0x0f0e07060d0c0504
GLOBL zip<>(SB), RODATA|NOPTR, $16

// func pack16AVX512(dst, q *int16, groups, stride int)
//
// One token from its own order to that of gemm16: in each eight, word pairs (c, 4+c). Groups go stride bytes apart.
TEXT ·pack16AVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ q+8(FP), SI
	MOVQ groups+16(FP), CX
	MOVQ stride+24(FP), R8
	VBROADCASTI32X4 zip<>(SB), Z16
group:
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VPSHUFB Z16, Z0, Z0
	VPSHUFB Z16, Z1, Z1
	VMOVDQU64 Z0, (DI)
	VMOVDQU64 Z1, 64(DI)
	ADDQ $128, SI
	ADDQ R8, DI
	DECQ CX
	JNZ group
	VZEROUPPER
	RET

// func order8AVX512(dst *int8, q *int16, pairs int)
//
// From their own order to that of gemv8: a pair of groups as 64 even entries, 64 odd ones.
TEXT ·order8AVX512(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ q+8(FP), SI
	MOVQ pairs+16(FP), CX
pair:
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VPMOVDB Z0, (DI)
	VPMOVDB Z1, 16(DI)
	VPMOVDB Z2, 32(DI)
	VPMOVDB Z3, 48(DI)
	VPSRLD $16, Z0, Z0
	VPSRLD $16, Z1, Z1
	VPSRLD $16, Z2, Z2
	VPSRLD $16, Z3, Z3
	VPMOVDB Z0, 64(DI)
	VPMOVDB Z1, 80(DI)
	VPMOVDB Z2, 96(DI)
	VPMOVDB Z3, 112(DI)
	ADDQ $256, SI
	ADDQ $128, DI
	DECQ CX
	JNZ pair
	VZEROUPPER
	RET

// Words 0 2 4 6 1 3 5 7 of each eight.
DATA unzip<>+0(SB)/8, $0x0d0c090805040100
DATA unzip<>+8(SB)/8, $0x0f0e0b0a07060302
GLOBL unzip<>(SB), RODATA|NOPTR, $16

// func pack8AVX512(dst *int8, q *int16, groups, stride int)
//
// One token from its own order to that of gemm8: in each eight, the even entries, then the odd ones. Groups go stride bytes apart.
TEXT ·pack8AVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ q+8(FP), SI
	MOVQ groups+16(FP), CX
	MOVQ stride+24(FP), R8
	VBROADCASTI32X4 unzip<>(SB), Z16
group:
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VPSHUFB Z16, Z0, Z0
	VPSHUFB Z16, Z1, Z1
	VPMOVWB Z0, (DI)
	VPMOVWB Z1, 32(DI)
	ADDQ $128, SI
	ADDQ R8, DI
	DECQ CX
	JNZ group
	VZEROUPPER
	RET
