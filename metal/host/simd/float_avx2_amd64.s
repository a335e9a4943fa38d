#include "textflag.h"

// Float work on vectors of 8 lanes; n is a multiple of 8. The exponential is that of float512_amd64.s, its power of two built from the
// exponent's bits, in two halves so that results down to the denormals are right.
DATA avxExp<>+0(SB)/4, $0x3fb8aa3b // log2 e
DATA avxExp<>+4(SB)/4, $0x3f317200 // ln 2, high part
DATA avxExp<>+8(SB)/4, $0x35bfbe8e // ln 2, the rest
DATA avxExp<>+12(SB)/4, $0x3ab60b61 // 1/720
DATA avxExp<>+16(SB)/4, $0x3c088889 // 1/120
DATA avxExp<>+20(SB)/4, $0x3d2aaaab // 1/24
DATA avxExp<>+24(SB)/4, $0x3e2aaaab // 1/6
DATA avxExp<>+28(SB)/4, $0x3f000000 // 1/2
DATA avxExp<>+32(SB)/4, $0x3f800000 // 1
DATA avxExp<>+36(SB)/4, $0xc2d00000 // -104
DATA avxExp<>+40(SB)/4, $0x42b17218 // 88.72
DATA avxExp<>+44(SB)/4, $127
GLOBL avxExp<>(SB), RODATA|NOPTR, $48

#define CONSTANT(at, Y) VBROADCASTSS avxExp<>+at(SB), Y

// Y0 = e^Y0; Y1, Y2, Y3 are used, Y15 is 1.
#define EXP8 \
	CONSTANT(36, Y1) \
	VMAXPS Y0, Y1, Y0 \
	CONSTANT(40, Y1) \
	VMINPS Y0, Y1, Y0 \
	CONSTANT(0, Y1) \
	VMULPS Y1, Y0, Y1 \
	VROUNDPS $0, Y1, Y1 \
	CONSTANT(4, Y2) \
	VFNMADD231PS Y2, Y1, Y0 \
	CONSTANT(8, Y2) \
	VFNMADD231PS Y2, Y1, Y0 \
	CONSTANT(12, Y2) \
	CONSTANT(16, Y3) \
	VFMADD213PS Y3, Y0, Y2 \
	CONSTANT(20, Y3) \
	VFMADD213PS Y3, Y0, Y2 \
	CONSTANT(24, Y3) \
	VFMADD213PS Y3, Y0, Y2 \
	CONSTANT(28, Y3) \
	VFMADD213PS Y3, Y0, Y2 \
	VFMADD213PS Y15, Y0, Y2 \
	VFMADD213PS Y15, Y0, Y2 \
	VCVTPS2DQ Y1, Y1 \
	VPSRAD $1, Y1, Y3 \
	VPSUBD Y3, Y1, Y1 \
	VPBROADCASTD avxExp<>+44(SB), Y0 \
	VPADDD Y0, Y1, Y1 \
	VPADDD Y0, Y3, Y3 \
	VPSLLD $23, Y1, Y1 \
	VPSLLD $23, Y3, Y3 \
	VMULPS Y1, Y2, Y2 \
	VMULPS Y3, Y2, Y0

// Y0 = sigmoid(Y4)
#define SIGMOID8 \
	VXORPS Y0, Y0, Y0 \
	VSUBPS Y4, Y0, Y0 \
	EXP8 \
	VADDPS Y15, Y0, Y0 \
	VDIVPS Y0, Y15, Y0

#define SUM8(Y, X) \
	VEXTRACTF128 $1, Y, X1 \
	VADDPS X1, X, X \
	VPERMILPD $1, X, X1 \
	VADDPS X1, X, X \
	VMOVSHDUP X, X1 \
	VADDSS X1, X, X

// func sumSquaresAVX2(x *float32, n int) float32
TEXT ·sumSquaresAVX2(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y2, Y2, Y2
loop:
	VMOVUPS (SI), Y3
	VFMADD231PS Y3, Y3, Y0
	ADDQ $32, SI
	SUBQ $8, CX
	JLE done
	VMOVUPS (SI), Y4
	VFMADD231PS Y4, Y4, Y2
	ADDQ $32, SI
	SUBQ $8, CX
	JG loop
done:
	VADDPS Y2, Y0, Y0
	SUM8(Y0, X0)
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func normAVX2(dst, x *float32, w *byte, scale float32, n int)
TEXT ·normAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ w+16(FP), R8
	VBROADCASTSS scale+24(FP), Y1
	MOVQ n+32(FP), CX
loop:
	VPMOVZXWD (R8), Y2
	VPSLLD $16, Y2, Y2
	VMULPS (SI), Y1, Y0
	VMULPS Y2, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	ADDQ $16, R8
	SUBQ $8, CX
	JG loop
	VZEROUPPER
	RET

// func mixAVX2(dst, x *float32, keep, scale float32, n int)
//
// dst = keep*dst + scale*x; with keep 0, dst is not read.
TEXT ·mixAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	VBROADCASTSS keep+16(FP), Y2
	VBROADCASTSS scale+20(FP), Y1
	MOVQ n+24(FP), CX
	VXORPS X3, X3, X3
	VUCOMISS X2, X3
	JEQ only
loop:
	VMULPS (DI), Y2, Y0
	VFMADD231PS (SI), Y1, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JG loop
	VZEROUPPER
	RET
only:
	VMULPS (SI), Y1, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JG only
	VZEROUPPER
	RET

// func siluMulAVX2(dst, gate, up *float32, n int)
TEXT ·siluMulAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ gate+8(FP), SI
	MOVQ up+16(FP), R8
	MOVQ n+24(FP), CX
	CONSTANT(32, Y15)
loop:
	VMOVUPS (SI), Y4
	SIGMOID8
	VMULPS Y4, Y0, Y0
	VMULPS (R8), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	ADDQ $32, R8
	SUBQ $8, CX
	JG loop
	VZEROUPPER
	RET

// func mulSigmoidAVX2(dst, x, gate *float32, scale float32, n int)
TEXT ·mulSigmoidAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ gate+16(FP), R8
	VBROADCASTSS scale+24(FP), Y5
	MOVQ n+32(FP), CX
	CONSTANT(32, Y15)
loop:
	VMOVUPS (R8), Y4
	SIGMOID8
	VMULPS (SI), Y0, Y0
	VMULPS Y5, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	ADDQ $32, R8
	SUBQ $8, CX
	JG loop
	VZEROUPPER
	RET

// func expSumAVX2(x *float32, top float32, n int) float32
TEXT ·expSumAVX2(SB), NOSPLIT, $0-28
	MOVQ x+0(FP), SI
	VBROADCASTSS top+8(FP), Y5
	MOVQ n+16(FP), CX
	CONSTANT(32, Y15)
	VXORPS Y6, Y6, Y6
loop:
	VMOVUPS (SI), Y0
	VSUBPS Y5, Y0, Y0
	EXP8
	VMOVUPS Y0, (SI)
	VADDPS Y0, Y6, Y6
	ADDQ $32, SI
	SUBQ $8, CX
	JG loop
	SUM8(Y6, X6)
	VMOVSS X6, ret+24(FP)
	VZEROUPPER
	RET

// func maxAVX2(x *float32, n int) float32
TEXT ·maxAVX2(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VMOVUPS (SI), Y0
loop:
	VMAXPS (SI), Y0, Y0
	ADDQ $32, SI
	SUBQ $8, CX
	JG loop
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPD $1, X0, X1
	VMAXPS X1, X0, X0
	VMOVSHDUP X0, X1
	VMAXSS X1, X0, X0
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func dotRowsAVX2(dst, x, rows *float32, stride, n, count int)
TEXT ·dotRowsAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), R8
	MOVQ rows+16(FP), SI
	MOVQ stride+24(FP), R9
	MOVQ n+32(FP), R10
	MOVQ count+40(FP), R11
	LEAQ (R9)(R9*2), R12
four:
	CMPQ R11, $4
	JLT one
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	MOVQ R8, DX
	MOVQ SI, BX
	MOVQ R10, CX
fourLoop:
	VMOVUPS (DX), Y2
	VFMADD231PS (BX), Y2, Y4
	VFMADD231PS (BX)(R9*1), Y2, Y5
	VFMADD231PS (BX)(R9*2), Y2, Y6
	VFMADD231PS (BX)(R12*1), Y2, Y7
	ADDQ $32, DX
	ADDQ $32, BX
	SUBQ $8, CX
	JG fourLoop
	VHADDPS Y5, Y4, Y4
	VHADDPS Y7, Y6, Y6
	VHADDPS Y6, Y4, Y4
	VEXTRACTF128 $1, Y4, X1
	VADDPS X1, X4, X0
	VMOVUPS X0, (DI)
	ADDQ $16, DI
	LEAQ (SI)(R9*4), SI
	SUBQ $4, R11
	JMP four
one:
	TESTQ R11, R11
	JZ done
	VXORPS Y0, Y0, Y0
	MOVQ R8, DX
	MOVQ SI, BX
	MOVQ R10, CX
oneLoop:
	VMOVUPS (DX), Y2
	VFMADD231PS (BX), Y2, Y0
	ADDQ $32, DX
	ADDQ $32, BX
	SUBQ $8, CX
	JG oneLoop
	SUM8(Y0, X0)
	VMOVSS X0, (DI)
	ADDQ $4, DI
	ADDQ R9, SI
	DECQ R11
	JMP one
done:
	VZEROUPPER
	RET

// func addRowsAVX2(dst, weights, rows *float32, stride, n, count int)
TEXT ·addRowsAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ weights+8(FP), R8
	MOVQ rows+16(FP), SI
	MOVQ stride+24(FP), R9
	MOVQ n+32(FP), R10
	MOVQ count+40(FP), R11
wide:
	CMPQ R10, $64
	JLT narrow
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
	VMOVUPS 128(DI), Y4
	VMOVUPS 160(DI), Y5
	VMOVUPS 192(DI), Y6
	VMOVUPS 224(DI), Y7
	MOVQ R8, DX
	MOVQ SI, BX
	MOVQ R11, CX
wideRow:
	VBROADCASTSS (DX), Y8
	VFMADD231PS (BX), Y8, Y0
	VFMADD231PS 32(BX), Y8, Y1
	VFMADD231PS 64(BX), Y8, Y2
	VFMADD231PS 96(BX), Y8, Y3
	VFMADD231PS 128(BX), Y8, Y4
	VFMADD231PS 160(BX), Y8, Y5
	VFMADD231PS 192(BX), Y8, Y6
	VFMADD231PS 224(BX), Y8, Y7
	ADDQ $4, DX
	ADDQ R9, BX
	DECQ CX
	JNZ wideRow
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, 128(DI)
	VMOVUPS Y5, 160(DI)
	VMOVUPS Y6, 192(DI)
	VMOVUPS Y7, 224(DI)
	ADDQ $256, DI
	ADDQ $256, SI
	SUBQ $64, R10
	JMP wide
narrow:
	TESTQ R10, R10
	JZ done
	VMOVUPS (DI), Y0
	MOVQ R8, DX
	MOVQ SI, BX
	MOVQ R11, CX
narrowRow:
	VBROADCASTSS (DX), Y8
	VFMADD231PS (BX), Y8, Y0
	ADDQ $4, DX
	ADDQ R9, BX
	DECQ CX
	JNZ narrowRow
	VMOVUPS Y0, (DI)
	ADDQ $32, DI
	ADDQ $32, SI
	SUBQ $8, R10
	JMP narrow
done:
	VZEROUPPER
	RET

DATA avxHigh<>+0(SB)/4, $0xffff0000
GLOBL avxHigh<>(SB), RODATA|NOPTR, $4

// func convSiluAVX2(dst *float32, taps *byte, u0, u1, u2, u3 *float32, n int)
TEXT ·convSiluAVX2(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ taps+8(FP), SI
	MOVQ u0+16(FP), R8
	MOVQ u1+24(FP), R9
	MOVQ u2+32(FP), R10
	MOVQ u3+40(FP), R11
	MOVQ n+48(FP), CX
	CONSTANT(32, Y15)
	VPBROADCASTD avxHigh<>(SB), Y14
	XORQ AX, AX
loop:
	VMOVUPS (SI), Y4
	VMOVUPS 32(SI), Y5
	VSHUFPS $0x88, Y5, Y4, Y6 // taps 0 and 1 of channels 0 1 4 5 2 3 6 7
	VSHUFPS $0xdd, Y5, Y4, Y7 // taps 2 and 3
	VPERMPD $0xd8, Y6, Y6
	VPERMPD $0xd8, Y7, Y7
	VPSLLD $16, Y6, Y8
	VPAND Y14, Y6, Y6
	VPSLLD $16, Y7, Y9
	VPAND Y14, Y7, Y7
	VMULPS (R8)(AX*1), Y8, Y4
	VFMADD231PS (R9)(AX*1), Y6, Y4
	VFMADD231PS (R10)(AX*1), Y9, Y4
	VFMADD231PS (R11)(AX*1), Y7, Y4
	SIGMOID8
	VMULPS Y4, Y0, Y0
	VMOVUPS Y0, (DI)(AX*1)
	ADDQ $64, SI
	ADDQ $32, AX
	SUBQ $8, CX
	JG loop
	VZEROUPPER
	RET
