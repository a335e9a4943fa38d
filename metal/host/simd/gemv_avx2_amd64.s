#include "textflag.h"

// Products of 4 and 8 bit weights with 16-bit activations, in units of four groups. Scales of a unit go through the stack, from where
// they are broadcast. Prefetch as in gemv512_amd64.s.
#define AHEAD 4096

DATA avxNibbles<>+0(SB)/4, $0x000f000f
GLOBL avxNibbles<>(SB), RODATA|NOPTR, $4

#define LOAD_ARGS \
	MOVQ y+0(FP), DI \
	MOVQ codes+8(FP), SI \
	MOVQ scales+16(FP), R9 \
	MOVQ biases+24(FP), R10 \
	MOVQ x+32(FP), R8 \
	MOVQ steps+40(FP), R11 \
	MOVQ sums+48(FP), R12 \
	MOVQ rows+56(FP), R13 \
	MOVQ units+64(FP), CX

// The unit's scale*step to AT(SP); BIAS += bias*sum. AX counts groups.
#define UNIT_SCALES(STEPS, SUMS, AT, BIAS) \
	VMULPS (STEPS)(AX*4), X14, X0 \
	VMOVUPS X0, AT(SP) \
	VFMADD231PS (SUMS)(AX*4), X13, BIAS

#define LOAD_SCALES \
	VPMOVZXWD (R9), X14 \
	VPSLLD $16, X14, X14 \
	VPMOVZXWD (R10), X13 \
	VPSLLD $16, X13, X13

// The nibbles of group g in Y0..Y3: register c has weight 4i+c in word i.
#define UNPACK(g) \
	VMOVDQU (32*g)(SI), Y0 \
	VPSRLW $4, Y0, Y1 \
	VPSRLW $8, Y0, Y2 \
	VPSRLW $12, Y0, Y3 \
	VPAND Y15, Y0, Y0 \
	VPAND Y15, Y1, Y1 \
	VPAND Y15, Y2, Y2

// ACC += scale(AT)*nibbles·X+off, X's register c lies 64*c from there.
#define DOT(X, off, AT, ACC) \
	VPMADDWD (off)(X), Y0, Y4 \
	VPMADDWD (off+64)(X), Y1, Y5 \
	VPMADDWD (off+128)(X), Y2, Y6 \
	VPMADDWD (off+192)(X), Y3, Y7 \
	VPADDD Y5, Y4, Y4 \
	VPADDD Y7, Y6, Y6 \
	VPADDD Y6, Y4, Y4 \
	VCVTDQ2PS Y4, Y4 \
	VBROADCASTSS AT(SP), Y5 \
	VFMADD231PS Y5, Y4, ACC

// The sum of ACC and BIAS to (DI)+at; uses X0, X1.
#define STORE_SUM(ACC, ACCX, BIAS, at) \
	VEXTRACTF128 $1, ACC, X0 \
	VADDPS ACCX, X0, X0 \
	VADDPS BIAS, X0, X0 \
	VPERMILPD $1, X0, X1 \
	VADDPS X1, X0, X0 \
	VMOVSHDUP X0, X1 \
	VADDSS X1, X0, X0 \
	VMOVSS X0, at(DI)

// func gemv16AVX2(y *float32, codes, scales, biases *byte, x *int16, steps, sums *float32, rows, units int)
TEXT ·gemv16AVX2(SB), NOSPLIT, $16-72
	LOAD_ARGS
	VPBROADCASTD avxNibbles<>(SB), Y15
row:
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS X12, X12, X12
	XORQ AX, AX
	MOVQ R8, DX
	MOVQ CX, BX
unit:
	LOAD_SCALES
	UNIT_SCALES(R11, R12, 0, X12)
	PREFETCHT1 AHEAD(SI)
	PREFETCHT1 (AHEAD+64)(SI)
	UNPACK(0)
	DOT(DX, 0, 0, Y8)
	UNPACK(1)
	DOT(DX, 32, 4, Y9)
	UNPACK(2)
	DOT(DX, 256, 8, Y8)
	UNPACK(3)
	DOT(DX, 288, 12, Y9)
	ADDQ $128, SI
	ADDQ $512, DX
	ADDQ $8, R9
	ADDQ $8, R10
	ADDQ $4, AX
	DECQ BX
	JNZ unit
	VADDPS Y9, Y8, Y8
	STORE_SUM(Y8, X8, X12, 0)
	ADDQ $4, DI
	DECQ R13
	JNZ row
	VZEROUPPER
	RET

// func gemm16AVX2(y *float32, codes, scales, biases *byte, x *int16, steps, sums *float32, rows, units int)
//
// Four tokens: x, steps and sums are those of the first, the others lie one vector of activations, and of groups, further on. y [rows, 4].
TEXT ·gemm16AVX2(SB), NOSPLIT, $64-72
	LOAD_ARGS
	VPBROADCASTD avxNibbles<>(SB), Y15
	MOVQ CX, R14
	SHLQ $9, R14 // bytes of one token's activations: 256 values a unit
row4:
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS Y10, Y10, Y10
	VXORPS Y11, Y11, Y11
	VXORPS Y12, Y12, Y12 // the four tokens' bias sums, one a lane
	XORQ AX, AX
	MOVQ R8, DX
	MOVQ CX, BX
unit4:
	LOAD_SCALES
	PREFETCHT1 AHEAD(SI)
	PREFETCHT1 (AHEAD+64)(SI)
	MOVQ CX, R15
	SHLQ $4, R15 // bytes of one token's steps: 4 a unit
	VMULPS (R11)(AX*4), X14, X0
	VMOVUPS X0, 0(SP)
	VMULPS (R12)(AX*4), X13, X1
	LEAQ (R11)(R15*1), R11
	LEAQ (R12)(R15*1), R12
	VMULPS (R11)(AX*4), X14, X0
	VMOVUPS X0, 16(SP)
	VMULPS (R12)(AX*4), X13, X2
	LEAQ (R11)(R15*1), R11
	LEAQ (R12)(R15*1), R12
	VMULPS (R11)(AX*4), X14, X0
	VMOVUPS X0, 32(SP)
	VMULPS (R12)(AX*4), X13, X3
	LEAQ (R11)(R15*1), R11
	LEAQ (R12)(R15*1), R12
	VMULPS (R11)(AX*4), X14, X0
	VMOVUPS X0, 48(SP)
	VMULPS (R12)(AX*4), X13, X4
	VHADDPS X2, X1, X1
	VHADDPS X4, X3, X3
	VHADDPS X3, X1, X1
	VADDPS X1, X12, X12
	LEAQ (R15)(R15*2), R15
	SUBQ R15, R11
	SUBQ R15, R12
	LEAQ (DX)(R14*1), R15
	UNPACK(0)
	DOT(DX, 0, 0, Y8)
	DOT(R15, 0, 16, Y9)
	LEAQ (R15)(R14*1), R15
	DOT(R15, 0, 32, Y10)
	LEAQ (R15)(R14*1), R15
	DOT(R15, 0, 48, Y11)
	LEAQ (DX)(R14*1), R15
	UNPACK(1)
	DOT(DX, 32, 4, Y8)
	DOT(R15, 32, 20, Y9)
	LEAQ (R15)(R14*1), R15
	DOT(R15, 32, 36, Y10)
	LEAQ (R15)(R14*1), R15
	DOT(R15, 32, 52, Y11)
	LEAQ (DX)(R14*1), R15
	UNPACK(2)
	DOT(DX, 256, 8, Y8)
	DOT(R15, 256, 24, Y9)
	LEAQ (R15)(R14*1), R15
	DOT(R15, 256, 40, Y10)
	LEAQ (R15)(R14*1), R15
	DOT(R15, 256, 56, Y11)
	LEAQ (DX)(R14*1), R15
	UNPACK(3)
	DOT(DX, 288, 12, Y8)
	DOT(R15, 288, 28, Y9)
	LEAQ (R15)(R14*1), R15
	DOT(R15, 288, 44, Y10)
	LEAQ (R15)(R14*1), R15
	DOT(R15, 288, 60, Y11)
	ADDQ $128, SI
	ADDQ $512, DX
	ADDQ $8, R9
	ADDQ $8, R10
	ADDQ $4, AX
	DECQ BX
	JNZ unit4
	VHADDPS Y9, Y8, Y8
	VHADDPS Y11, Y10, Y10
	VHADDPS Y10, Y8, Y8
	VEXTRACTF128 $1, Y8, X0
	VADDPS X8, X0, X0
	VADDPS X12, X0, X0
	VMOVUPS X0, (DI)
	ADDQ $16, DI
	DECQ R13
	JNZ row4
	VZEROUPPER
	RET

// Group g of 8-bit weights, 64 bytes, against 64 words in their own order.
#define CODES8(g, ACC) \
	VPMOVZXBW (64*g)(SI), Y0 \
	VPMOVZXBW (64*g+16)(SI), Y1 \
	VPMOVZXBW (64*g+32)(SI), Y2 \
	VPMOVZXBW (64*g+48)(SI), Y3 \
	VPMADDWD (128*g)(DX), Y0, Y0 \
	VPMADDWD (128*g+32)(DX), Y1, Y1 \
	VPMADDWD (128*g+64)(DX), Y2, Y2 \
	VPMADDWD (128*g+96)(DX), Y3, Y3 \
	VPADDD Y1, Y0, Y0 \
	VPADDD Y3, Y2, Y2 \
	VPADDD Y2, Y0, Y0 \
	VCVTDQ2PS Y0, Y0 \
	VBROADCASTSS (4*g)(SP), Y1 \
	VFMADD231PS Y1, Y0, ACC

// func gemvCodes8AVX2(y *float32, codes, scales, biases *byte, x *int16, steps, sums *float32, rows, units int)
TEXT ·gemvCodes8AVX2(SB), NOSPLIT, $16-72
	LOAD_ARGS
row8:
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS X12, X12, X12
	XORQ AX, AX
	MOVQ R8, DX
	MOVQ CX, BX
unit8:
	LOAD_SCALES
	UNIT_SCALES(R11, R12, 0, X12)
	PREFETCHT1 AHEAD(SI)
	PREFETCHT1 (AHEAD+64)(SI)
	PREFETCHT1 (AHEAD+128)(SI)
	PREFETCHT1 (AHEAD+192)(SI)
	CODES8(0, Y8)
	CODES8(1, Y9)
	CODES8(2, Y8)
	CODES8(3, Y9)
	ADDQ $256, SI
	ADDQ $512, DX
	ADDQ $8, R9
	ADDQ $8, R10
	ADDQ $4, AX
	DECQ BX
	JNZ unit8
	VADDPS Y9, Y8, Y8
	STORE_SUM(Y8, X8, X12, 0)
	ADDQ $4, DI
	DECQ R13
	JNZ row8
	VZEROUPPER
	RET

DATA avxAbs<>+0(SB)/4, $0x7fffffff
GLOBL avxAbs<>(SB), RODATA|NOPTR, $4

// Sixteen values at (SI)+at, times Y3, as words to (DI)+at/2; Y4 += them.
#define ROUND16(at) \
	VMULPS (at)(SI), Y3, Y0 \
	VMULPS (at+32)(SI), Y3, Y1 \
	VCVTPS2DQ Y0, Y0 \
	VCVTPS2DQ Y1, Y1 \
	VPADDD Y0, Y4, Y4 \
	VPADDD Y1, Y4, Y4 \
	VPACKSSDW Y1, Y0, Y0 \
	VPERMQ $0xd8, Y0, Y0 \
	VMOVDQU Y0, (at/2)(DI)

// func quantise16AVX2(q *int16, steps, sums, x *float32, groups int, limit float32)
TEXT ·quantise16AVX2(SB), NOSPLIT, $0-44
	MOVQ q+0(FP), DI
	MOVQ steps+8(FP), R8
	MOVQ sums+16(FP), R9
	MOVQ x+24(FP), SI
	MOVQ groups+32(FP), CX
	VMOVSS limit+40(FP), X10
	VBROADCASTSS avxAbs<>(SB), Y11
	VXORPS X12, X12, X12
group:
	VANDPS (SI), Y11, Y0
	VANDPS 32(SI), Y11, Y1
	VANDPS 64(SI), Y11, Y2
	VANDPS 96(SI), Y11, Y3
	VMAXPS Y1, Y0, Y0
	VMAXPS Y3, Y2, Y2
	VMAXPS Y2, Y0, Y0
	VANDPS 128(SI), Y11, Y4
	VANDPS 160(SI), Y11, Y1
	VANDPS 192(SI), Y11, Y2
	VANDPS 224(SI), Y11, Y3
	VMAXPS Y1, Y4, Y4
	VMAXPS Y3, Y2, Y2
	VMAXPS Y4, Y0, Y0
	VMAXPS Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPD $1, X0, X1
	VMAXPS X1, X0, X0
	VMOVSHDUP X0, X1
	VMAXSS X1, X0, X0
	VDIVSS X10, X0, X2
	VDIVSS X0, X10, X3
	VMOVSS X2, (R8)
	VUCOMISS X0, X12
	JNE some
	VMOVAPS X12, X3
some:
	VBROADCASTSS X3, Y3
	VPXOR Y4, Y4, Y4
	ROUND16(0)
	ROUND16(64)
	ROUND16(128)
	ROUND16(192)
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
