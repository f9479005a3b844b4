BvariableJ0Æ#¡AÂŒÍ@u…3A»ğ‡AG•A
LA…ĞOAÑAt$AeÚ@ü0KA:§BA