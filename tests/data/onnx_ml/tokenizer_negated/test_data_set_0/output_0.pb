2Hello2World2#2
ab,c;ünï2ok2#2#2#2#2a2b1_x222By0